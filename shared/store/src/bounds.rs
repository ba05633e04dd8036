//! What is refused before it is sent, alike by every implementation: DynamoDB's quotas on keys, items and transactions.

use std::collections::HashSet;

use shardcron_domain::limits::{ITEM_BYTES_MAX, SK_BYTES_MAX, TRANSACTION_BYTES_MAX, TRANSACTION_ITEMS_MAX};

use crate::table::keys;
use crate::{ItemKey, StoreError};

/// Why a write is refused before it is sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BoundError {
    #[error("the sort key of {key} would have {bytes} bytes, and DynamoDB takes {SK_BYTES_MAX}")]
    SortKey { key: ItemKey, bytes: usize },
    #[error("{key} would have {bytes} bytes, and DynamoDB takes {ITEM_BYTES_MAX}")]
    Item { key: ItemKey, bytes: usize },
    #[error("a transaction has 1 to {TRANSACTION_ITEMS_MAX} items, and this one {0}")]
    Items(usize),
    #[error("a transaction has at most {TRANSACTION_BYTES_MAX} bytes, and this one {0}")]
    Bytes(usize),
    #[error("{0} is twice in one transaction")]
    Twice(ItemKey),
    #[error("an empty text names no request")]
    Token,
}

/// An item by its key and its bytes as DynamoDB counts them.
pub(crate) type Sized = (ItemKey, usize);

/// Checks one item.
pub(crate) fn item((key, bytes): &Sized) -> Result<(), BoundError> {
    let sort_key = keys(key).sk.len();
    if sort_key > SK_BYTES_MAX {
        return Err(BoundError::SortKey { key: key.clone(), bytes: sort_key });
    }
    if *bytes > ITEM_BYTES_MAX {
        return Err(BoundError::Item { key: key.clone(), bytes: *bytes });
    }
    Ok(())
}

/// Checks the items of a transaction and the text that names it.
pub(crate) fn transaction(items: &[Sized], token: &str) -> Result<(), BoundError> {
    if token.is_empty() {
        return Err(BoundError::Token);
    }
    if items.is_empty() || items.len() > TRANSACTION_ITEMS_MAX {
        return Err(BoundError::Items(items.len()));
    }
    let mut seen = HashSet::new();
    let mut total = 0;
    for sized in items {
        item(sized)?;
        if !seen.insert(&sized.0) {
            return Err(BoundError::Twice(sized.0.clone()));
        }
        total += sized.1;
    }
    if total > TRANSACTION_BYTES_MAX {
        return Err(BoundError::Bytes(total));
    }
    Ok(())
}

impl BoundError {
    /// As the port says it.
    pub(crate) fn refusing(self, what: impl Into<String>) -> StoreError {
        StoreError::Refused { what: what.into(), source: Box::new(self) }
    }
}
