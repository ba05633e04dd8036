//! Every expression that is sent to DynamoDB: one for each [`Guard`], each [`SetAdd`] and each query. Nothing is ever
//! formatted into one.
//!
//! All attribute names go by placeholders, since many are DynamoDB's reserved words (`token`, `status`).

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use shardcron_domain::time::{Millis, ScheduledTime};

use crate::table::{DUE_INDEX, Index, JOB_SK, OPEN_INDEX, PK, SK};
use crate::{Guard, ItemKey, SetAdd};

/// An expression with what its placeholders stand for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expression {
    /// The text.
    pub(super) text: &'static str,
    names: Vec<(&'static str, &'static str)>,
    values: Vec<(&'static str, AttributeValue)>,
}

impl Expression {
    /// The names, as the SDK takes them.
    pub(super) fn names(&self) -> HashMap<String, String> {
        self.names.iter().map(|(place, name)| ((*place).to_owned(), (*name).to_owned())).collect()
    }

    /// The values, as the SDK takes them; `None` for none, since DynamoDB refuses an empty map.
    pub(super) fn values(&self) -> Option<HashMap<String, AttributeValue>> {
        let values: HashMap<_, _> =
            self.values.iter().map(|(place, value)| ((*place).to_owned(), value.clone())).collect();
        (!values.is_empty()).then_some(values)
    }
}

/// The condition of a guard; `None` for [`Guard::Rides`].
///
/// The path of [`Guard::Owner`] is that of `ShardStatus::Leased(Lease)` as serde writes it: it exists only while the
/// shard is leased, and a comparison with a path that doesn't exist is false.
pub(super) fn guard(guard: &Guard) -> Option<Expression> {
    match guard {
        Guard::Absent => {
            Some(Expression { text: "attribute_not_exists(#pk)", names: vec![("#pk", PK)], values: Vec::new() })
        }
        Guard::Version(version) => Some(Expression {
            text: "#version = :version",
            names: vec![("#version", "version")],
            values: vec![(":version", number(version.0))],
        }),
        Guard::Owner { token, version, at } => Some(Expression {
            text: "#token = :token AND #version = :version AND #status.#leased.#until > :at",
            names: vec![
                ("#token", "token"),
                ("#version", "version"),
                ("#status", "status"),
                ("#leased", "leased"),
                ("#until", "until"),
            ],
            values: vec![(":token", number(token.0)), (":version", number(version.0)), (":at", number(at.0))],
        }),
        Guard::Rides => None,
    }
}

/// An update of one item.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Update {
    /// Of which item.
    pub(super) key: ItemKey,
    /// What it does.
    pub(super) text: &'static str,
    /// On what condition; its names and values are those of `text` too.
    pub(super) condition: Expression,
}

/// The update of an addition. It raises the version, so that a whole-item write by somebody who read before it loses;
/// what is in the set already is not added again, so that repeating it doesn't make others lose for nothing.
pub(super) fn add(add: &SetAdd) -> Update {
    match add {
        SetAdd::ShardDone(run, group, shard) => Update {
            key: ItemKey::Group(run.clone(), *group),
            text: "ADD #done :set, #version :one",
            condition: Expression {
                text: "attribute_exists(#pk) AND NOT contains(#done, :member)",
                names: vec![("#pk", PK), ("#done", "done"), ("#version", "version")],
                values: vec![
                    (":set", AttributeValue::Ss(vec![shard.to_string()])),
                    (":member", AttributeValue::S(shard.to_string())),
                    (":one", number(1)),
                ],
            },
        },
        SetAdd::GroupFull(run, group) => Update {
            key: ItemKey::Instance(run.instance.clone()),
            text: "ADD #groups :set, #version :one",
            condition: Expression {
                text: "attribute_exists(#pk) AND #generation = :generation AND NOT contains(#groups, :member)",
                names: vec![
                    ("#pk", PK),
                    ("#groups", "groups_done"),
                    ("#version", "version"),
                    ("#generation", "generation"),
                ],
                values: vec![
                    (":set", AttributeValue::Ns(vec![group.to_string()])),
                    (":member", number(group.0)),
                    (":generation", number(run.generation.0)),
                    (":one", number(1)),
                ],
            },
        },
    }
}

/// The entries of one partition of [`DUE_INDEX`] up to `until`.
pub(super) fn due(bucket: String, until: ScheduledTime) -> Expression {
    index(DUE_INDEX, bucket, text(until.to_string()))
}

/// The entries of one partition of [`OPEN_INDEX`] up to `until`.
pub(super) fn open(bucket: String, until: Millis) -> Expression {
    index(OPEN_INDEX, bucket, number(until.0))
}

fn index(index: Index, bucket: String, until: AttributeValue) -> Expression {
    Expression {
        text: "#bucket = :bucket AND #at <= :until",
        names: vec![("#bucket", index.partition), ("#at", index.sort)],
        values: vec![(":bucket", text(bucket)), (":until", until)],
    }
}

/// The items of a partition between two sort keys, both included.
pub(super) fn between(pk: String, from: String, through: String) -> Expression {
    Expression {
        text: "#pk = :pk AND #sk BETWEEN :from AND :through",
        names: vec![("#pk", PK), ("#sk", SK)],
        values: vec![(":pk", text(pk)), (":from", text(from)), (":through", text(through))],
    }
}

/// The items of a partition whose sort key begins so.
pub(super) fn beginning(pk: String, prefix: &str) -> Expression {
    Expression {
        text: "#pk = :pk AND begins_with(#sk, :prefix)",
        names: vec![("#pk", PK), ("#sk", SK)],
        values: vec![(":pk", text(pk)), (":prefix", text(prefix))],
    }
}

/// The filter of a scan for jobs.
pub(super) fn is_job() -> Expression {
    Expression { text: "#sk = :job", names: vec![("#sk", SK)], values: vec![(":job", text(JOB_SK))] }
}

pub(super) fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

pub(super) fn number(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}
