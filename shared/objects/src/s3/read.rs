//! Reading an object.

use std::ops::Range;

use async_trait::async_trait;
use aws_sdk_s3::primitives::ByteStream;
use bytes::Bytes;

use super::failure::{Fault, Meaning, chain, failed, meaning, refused};
use super::{ANSWER_TIMEOUT, S3Objects, bounded, bucket_of};
use crate::{ETag, ObjectName, ObjectReader, ObjectsError};

impl S3Objects {
    pub(super) async fn read(
        &self,
        object: &ObjectName,
        range: Option<Range<u64>>,
        if_match: Option<&ETag>,
    ) -> Result<Box<dyn ObjectReader>, ObjectsError> {
        let what = || format!("reading {object}");
        let bucket = bucket_of(object)?;
        let asked = match &range {
            None => None,
            // HTTP has no empty range (RFC 9110 §14.1.2), and no object is as long as sizes are counted.
            Some(range) if range.is_empty() || i64::try_from(range.start).is_err() => {
                return self.nothing_of(object, if_match).await;
            }
            Some(range) if i64::try_from(range.end).is_err() => Some(format!("bytes={}-", range.start)),
            Some(range) => Some(format!("bytes={}-{}", range.start, range.end - 1)),
        };
        let request = self
            .client
            .get_object()
            .bucket(bucket)
            .key(&object.key)
            .set_range(asked.clone())
            .set_if_match(if_match.map(|tag| tag.0.clone()));
        let answer = match request.customize().config_override(bounded(ANSWER_TIMEOUT)).send().await {
            Ok(answer) => answer,
            Err(error) => {
                return match meaning(&error) {
                    Meaning::Absent => Err(ObjectsError::NotFound { object: object.clone() }),
                    Meaning::Condition => Err(ObjectsError::Changed { object: object.clone() }),
                    Meaning::Beyond if range.is_some() => self.nothing_of(object, if_match).await,
                    _ => Err(failed(what(), error)),
                };
            }
        };
        let length = answer.content_length.and_then(|length| u64::try_from(length).ok());
        let length = length.ok_or_else(|| refused(what(), Fault::Lacks("Content-Length")))?;
        if let (Some(range), Some(asked)) = (range, asked) {
            let got = answer.content_range.as_deref();
            if got.and_then(|got| covered(got, &range)) != Some(length) {
                let got = format!("{length} bytes with Content-Range `{}`", got.unwrap_or_default());
                return Err(refused(what(), Fault::Range { asked, got }));
            }
        }
        Ok(Box::new(Body { object: object.clone(), stream: answer.body, left: length }))
    }

    /// A reader of no bytes of an object, if it is there and has this tag.
    async fn nothing_of(
        &self,
        object: &ObjectName,
        if_match: Option<&ETag>,
    ) -> Result<Box<dyn ObjectReader>, ObjectsError> {
        match self.look(object, if_match).await? {
            Some(_) => Ok(Box::new(Body { object: object.clone(), stream: ByteStream::default(), left: 0 })),
            None => Err(ObjectsError::NotFound { object: object.clone() }),
        }
    }
}

/// The number of bytes of a `Content-Range` (`bytes 0-4/10`), if it is this range, clipped at the object's end.
pub(super) fn covered(content_range: &str, range: &Range<u64>) -> Option<u64> {
    let (bounds, size) = content_range.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = bounds.split_once('-')?;
    let (first, last, size): (u64, u64, u64) = (first.parse().ok()?, last.parse().ok()?, size.parse().ok()?);
    let end = last.checked_add(1)?;
    (first == range.start && end == range.end.min(size)).then_some(end.checked_sub(first)?)
}

/// An answer's body.
struct Body {
    object: ObjectName,
    stream: ByteStream,
    /// Bytes that are still to come.
    left: u64,
}

impl Body {
    fn broken(&self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ObjectsError {
        ObjectsError::Unavailable { what: format!("reading {}", self.object), source: source.into() }
    }
}

#[async_trait]
impl ObjectReader for Body {
    async fn next(&mut self) -> Result<Option<Bytes>, ObjectsError> {
        loop {
            match self.stream.next().await {
                Some(Ok(bytes)) if bytes.is_empty() => {}
                Some(Ok(bytes)) => {
                    let length = bytes.len() as u64;
                    if length > self.left {
                        return Err(self.broken(Fault::TooLong(length - self.left)));
                    }
                    self.left -= length;
                    return Ok(Some(bytes));
                }
                // The stream's own text is "streaming error"; what happened stands in its causes.
                Some(Err(error)) => return Err(self.broken(chain(&error))),
                None if self.left == 0 => return Ok(None),
                None => return Err(self.broken(Fault::BrokeOff(self.left))),
            }
        }
    }
}
