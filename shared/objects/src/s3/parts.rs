//! Conditional puts of large contents, as uploads in parts.
//!
//! Parts can be sent side by side, and one whose sending fails costs itself and not the whole. Nobody sees them: the
//! object appears with the completion, whole, and it is the completion that carries the condition. An upload that isn't
//! completed is aborted, since its parts are paid for. One whose process died can't be: a lifecycle rule on the bucket
//! (`AbortIncompleteMultipartUpload`) is for that.

use aws_sdk_s3::Client;
use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::operation::complete_multipart_upload::CompleteMultipartUploadError;
use aws_sdk_s3::operation::upload_part::UploadPartError;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumAlgorithm, CompletedMultipartUpload, CompletedPart};
use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};
use shardcron_domain::limits::{
    SINGLE_PUT_BYTES_MAX, UPLOAD_COMPLETION_TIMEOUT, UPLOAD_PART_BYTES, UPLOAD_PARTS_AT_ONCE, UPLOADS_MAX,
};

use super::failure::{Fault, Meaning, failed, meaning, refused};
use super::put::{Condition, Sendings, attempt_of};
use super::{ANSWER_TIMEOUT, S3Objects, bounded, bucket_of};
use crate::{ETag, ObjectName, ObjectsError, Put};

/// Where contents are cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// Bytes that go by one request.
    pub(super) single_max: u64,
    /// Bytes of a part.
    pub(super) part: u64,
}

impl Default for Cut {
    fn default() -> Self {
        Self { single_max: SINGLE_PUT_BYTES_MAX, part: UPLOAD_PART_BYTES }
    }
}

/// What a completion came to.
enum Completed {
    /// S3 has decided.
    Decided(Put),
    /// Nothing was decided, and the upload is of no use any more: only another one can be.
    Void(ObjectsError),
}

/// An upload that has begun.
struct Upload<'a> {
    client: &'a Client,
    object: &'a ObjectName,
    bucket: &'a str,
    id: String,
}

impl S3Objects {
    pub(super) async fn put_in_parts(
        &self,
        object: &ObjectName,
        condition: Condition<'_>,
        content: Bytes,
    ) -> Result<Put, ObjectsError> {
        // Of all the completions: a later one may meet what an earlier one, of an upload before, has written.
        let sendings = Sendings::default();
        let mut uploads = 0;
        loop {
            let upload = self.begin(object).await?;
            let completed = match upload.send(&content, self.cut.part).await {
                Ok(parts) => self.complete(&upload, parts, condition, &content, &sendings).await,
                Err(error) => Err(failed(what(object), error)),
            };
            if !matches!(completed, Ok(Completed::Decided(Put::Written(_)))) {
                upload.abort().await;
            }
            uploads += 1;
            match completed? {
                Completed::Decided(put) => return Ok(put),
                Completed::Void(error) if uploads == UPLOADS_MAX => return Err(error),
                Completed::Void(_) => {}
            }
        }
    }

    async fn begin<'a>(&'a self, object: &'a ObjectName) -> Result<Upload<'a>, ObjectsError> {
        let bucket = bucket_of(object)?;
        let request = self.client.create_multipart_upload().bucket(bucket).key(&object.key);
        // Said here, so that S3 holds the parts' checksums, and the whole's, against what it got.
        let request = request.checksum_algorithm(ChecksumAlgorithm::Crc32);
        let answer = request.customize().config_override(bounded(ANSWER_TIMEOUT)).send().await;
        let answer = answer.map_err(|error| failed(what(object), error))?;
        let id = answer.upload_id.ok_or_else(|| refused(what(object), Fault::Lacks("UploadId")))?;
        Ok(Upload { client: &self.client, object, bucket, id })
    }

    async fn complete(
        &self,
        upload: &Upload<'_>,
        parts: Vec<CompletedPart>,
        condition: Condition<'_>,
        content: &[u8],
        sendings: &Sendings,
    ) -> Result<Completed, ObjectsError> {
        let what = || what(upload.object);
        let tag = match upload.complete(parts, condition, sendings).await {
            Ok(tag) => tag.ok_or_else(|| refused(what(), Fault::Lacks("ETag")))?,
            Err(error) => {
                let unless_ours = match (meaning(&error), condition) {
                    (Meaning::Condition, _) | (Meaning::Absent, Condition::Match(_)) => {
                        Completed::Decided(Put::Refused)
                    }
                    (Meaning::Conflict | Meaning::UploadGone, _) => Completed::Void(failed(what(), error)),
                    _ => return Err(failed(what(), error)),
                };
                if sendings.all_answered() {
                    return Ok(unless_ours);
                }
                // An earlier sending may have been what this one met, or what has ended the upload.
                match self.tag_of(upload.object, content).await? {
                    Some(tag) => tag.0,
                    None => return Ok(unless_ours),
                }
            }
        };
        Ok(Completed::Decided(Put::Written(ETag(tag))))
    }
}

impl Upload<'_> {
    /// Sends the parts of a content, in any order; gives what the completion names of each, in theirs.
    async fn send(
        &self,
        content: &Bytes,
        part: u64,
    ) -> Result<Vec<CompletedPart>, SdkError<UploadPartError, HttpResponse>> {
        let part = usize::try_from(part).unwrap_or(usize::MAX);
        let cut = (0..content.len()).step_by(part).map(|from| content.slice(from..content.len().min(from + part)));
        let sent = (1..).zip(cut).map(|(number, part)| self.send_part(number, part));
        stream::iter(sent).buffered(UPLOAD_PARTS_AT_ONCE).try_collect().await
    }

    async fn send_part(
        &self,
        number: i32,
        part: Bytes,
    ) -> Result<CompletedPart, SdkError<UploadPartError, HttpResponse>> {
        let attempt = attempt_of(part.len() as u64 * UPLOAD_PARTS_AT_ONCE as u64);
        let request = self
            .client
            .upload_part()
            .bucket(self.bucket)
            .key(&self.object.key)
            .upload_id(&self.id)
            .part_number(number)
            .checksum_algorithm(ChecksumAlgorithm::Crc32)
            .body(ByteStream::from(part));
        let answer = request.customize().config_override(bounded(attempt)).send().await?;
        Ok(CompletedPart::builder()
            .part_number(number)
            .set_e_tag(answer.e_tag)
            .set_checksum_crc32(answer.checksum_crc32)
            .build())
    }

    /// Makes the parts the object, on this condition; gives its tag.
    async fn complete(
        &self,
        parts: Vec<CompletedPart>,
        condition: Condition<'_>,
        sendings: &Sendings,
    ) -> Result<Option<String>, SdkError<CompleteMultipartUploadError, HttpResponse>> {
        let request = self
            .client
            .complete_multipart_upload()
            .bucket(self.bucket)
            .key(&self.object.key)
            .upload_id(&self.id)
            .multipart_upload(CompletedMultipartUpload::builder().set_parts(Some(parts)).build());
        let request = match condition {
            Condition::Absent => request.if_none_match("*"),
            Condition::Match(tag) => request.if_match(&tag.0),
        };
        let config = bounded(UPLOAD_COMPLETION_TIMEOUT.to_std()).interceptor(sendings.clone());
        Ok(request.customize().config_override(config).send().await?.e_tag)
    }

    /// Gives up the parts. What fails here is left to the bucket's lifecycle: the put's own outcome is known by now.
    async fn abort(&self) {
        let request =
            self.client.abort_multipart_upload().bucket(self.bucket).key(&self.object.key).upload_id(&self.id);
        let _ = request.customize().config_override(bounded(ANSWER_TIMEOUT)).send().await;
    }
}

fn what(object: &ObjectName) -> String {
    format!("writing {object}")
}
