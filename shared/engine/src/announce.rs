//! The ends of instances, announced to whoever waits for them: at least once each.
//!
//! The write of an outcome leaves the instance in the open index ([`Instance::to_be_announced`]). Then the end is
//! announced, and a second write takes the instance out of the index. A crash between these leaves it there, and the
//! sweep announces it (again, maybe). So an announcement follows its outcome, is never lost, and can come twice: its
//! instance, generation and attempt tell one end from another.

use async_trait::async_trait;
use serde::Serialize;
use shardcron_domain::certificate::{CERTIFICATE_NAME, InstanceName};
use shardcron_domain::ids::{Attempt, Generation, JobName};
use shardcron_domain::instance::{Instance, InstanceStatus, Window};
use shardcron_domain::location::Root;
use shardcron_domain::shard::Counts;
use shardcron_domain::time::ScheduledTime;
use shardcron_store::{Guard, Item, Written};

use crate::Engine;
use crate::error::EngineError;
use crate::place::in_output;
use crate::ports::fresh_write_id;
use crate::write::Patience;

/// The end of an instance, as it is announced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Announcement {
    /// The job.
    pub job: JobName,
    /// The scheduled time.
    pub scheduled_time: ScheduledTime,
    /// Both, as commands name the instance.
    pub instance: InstanceName,
    /// The generation that has ended.
    pub generation: Generation,
    /// The attempt of it that has ended.
    pub attempt: Attempt,
    /// The data that it is about.
    pub window: Window,
    /// The state that it has ended in: `Succeeded`, `Failed`, `Cancelled` or `Replaced`.
    pub outcome: &'static str,
    /// Why, unless it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where its certificate is, if it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificatePlace>,
    /// What it counted, if it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<AnnouncedCounts>,
}

/// Where a certificate is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CertificatePlace {
    /// The bucket; on one machine without buckets, the directory.
    pub bucket: String,
    /// The key in it.
    pub key: String,
}

/// Records of a whole instance, by the names of the certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AnnouncedCounts {
    /// Records read.
    pub records_in: u64,
    /// Records in the results.
    pub records_out: u64,
    /// Records in the rejects.
    pub rejected: u64,
}

impl From<Counts> for AnnouncedCounts {
    fn from(counts: Counts) -> Self {
        Self { records_in: counts.input, records_out: counts.output, rejected: counts.rejected }
    }
}

/// An announcement that wasn't taken. Worth another try.
#[derive(Debug, thiserror::Error)]
#[error("the end of {instance} couldn't be announced: {source}")]
pub struct AnnounceError {
    /// Whose end.
    pub instance: String,
    /// The cause.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Who announces the ends of instances.
#[async_trait]
pub trait Announcer: Send + Sync {
    /// Announces an end. Returns once it was taken for good.
    ///
    /// # Errors
    /// [`AnnounceError`]; it may have been taken all the same.
    async fn announce(&self, end: &Announcement) -> Result<(), AnnounceError>;
}

impl Engine {
    /// Announces the end of an instance, if nobody has yet, and notes that it was.
    pub(crate) async fn announce_end(&self, instance: &Instance) -> Result<(), EngineError> {
        if !instance.is_unannounced() {
            return Ok(());
        }
        // Where nobody is to be told any more, it counts as announced.
        if let Some(announcer) = &self.announcer {
            announcer.announce(&self.announcement_of(instance).await?).await?;
        }
        let mut ended = instance.clone();
        loop {
            let next = ended.announced(&fresh_write_id(&*self.random))?;
            let put = self.put(Item::Instance(Box::new(next)), Guard::Version(ended.version), Patience::Tries);
            match put.await? {
                // A late addition to its done sets. Another end of it has an announcement of its own.
                Written::Lost(found) => match *found {
                    Item::Instance(found) if found.is_unannounced() && found.is_same_end(instance) => ended = *found,
                    _ => return Ok(()),
                },
                Written::Applied | Written::Missing => return Ok(()),
            }
        }
    }

    async fn announcement_of(&self, instance: &Instance) -> Result<Announcement, EngineError> {
        let has_succeeded = instance.status == InstanceStatus::Succeeded;
        let certificate = if has_succeeded {
            let output = self.spec_of(instance).await?.output()?;
            let name = in_output(&output, &instance.run(), CERTIFICATE_NAME);
            let bucket = match name.root {
                Root::Bucket(bucket) | Root::Directory(bucket) => bucket,
            };
            Some(CertificatePlace { bucket, key: name.key })
        } else {
            None
        };
        Ok(Announcement {
            job: instance.id.job.clone(),
            scheduled_time: instance.id.at,
            instance: InstanceName(instance.id.clone()),
            generation: instance.generation,
            attempt: instance.attempt,
            window: instance.window,
            outcome: instance.status.name(),
            reason: instance.status.outcome().map(|outcome| outcome.describe()),
            certificate,
            counts: instance.counts.filter(|_| has_succeeded).map(AnnouncedCounts::from),
        })
    }
}
