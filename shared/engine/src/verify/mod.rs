//! Verify: what is published, proven from the input: everything is read again, worked on again, and compared.
//!
//! Memory is bounded by the certificate, a page of the manifest, a shard's groups and the output; not by the input.

mod again;
mod parts;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use shardcron_domain::certificate::{CERTIFICATE_NAME, Certificate, ShardAccount};
use shardcron_domain::ids::{Generation, GroupNo, InstanceId};
use shardcron_domain::instance::{Instance, InstanceStatus};
use shardcron_domain::limits::VERIFY_HEADS_AT_ONCE;
use shardcron_domain::shard::Counts;
use shardcron_domain::verify::{self, Check, Finding, Findings};
use shardcron_input::{BoundaryKind, Manifest, ManifestObject, ManifestPage};
use shardcron_objects::{ObjectName, ObjectsError, Root, read_whole};
use shardcron_work::{Merge, Work};

use crate::Engine;
use crate::apply::LoadedSpec;
use crate::error::EngineError;
use crate::fan_out::manifest_key;
use crate::place::{in_output, in_state};

/// What a verification came to.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// The instance.
    pub instance: String,
    /// The generation that is published.
    pub generation: Generation,
    /// Where.
    pub output: String,
    /// Objects of the boundary that were looked at.
    pub objects: u64,
    /// Shards in the certificate.
    pub shards: u64,
    /// Of these, those whose input was read again to its end.
    pub shards_read: u64,
    /// Records that were read again, and what became of them.
    pub records: Counts,
    /// Parts that the certificate names.
    pub parts: u64,
    /// Rows that the input comes to; `None` when not all of it could be read again.
    pub rows: Option<u64>,
    /// What doesn't hold.
    #[serde(flatten)]
    pub found: Findings,
}

impl Verified {
    /// Whether the certificate is proven: everything was read again, and nothing differs.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.found.is_empty() && self.rows.is_some() && self.shards_read == self.shards
    }
}

/// What a verification goes along with.
struct Verifying<'a> {
    engine: &'a Engine,
    instance: &'a Instance,
    spec: &'a LoadedSpec,
    work: Arc<dyn Work>,
    merge: Box<dyn Merge>,
    /// The accounts of the certificate, by the group that their shards belong to.
    accounts: BTreeMap<GroupNo, Vec<&'a ShardAccount>>,
    verified: Verified,
}

impl Engine {
    /// Proves what is published of an instance, or says what doesn't hold.
    ///
    /// # Errors
    /// [`EngineError::NotPublished`], [`EngineError::PublishedEarlier`]; errors of store and objects, but for what they
    /// say about the thing itself (that it isn't there, or isn't what it was), which are findings.
    pub async fn verify(&self, id: &InstanceId) -> Result<Verified, EngineError> {
        let instance = self.instance(id).await?.ok_or_else(|| EngineError::NoInstance(id.clone()))?;
        let spec = self.spec_of(&instance).await?;
        let output = spec.output()?;
        let name = in_output(&output, &instance.run(), CERTIFICATE_NAME);
        let mut verified = Verified {
            instance: id.to_string(),
            generation: instance.generation,
            output: in_output(&output, &instance.run(), "").to_string(),
            objects: 0,
            shards: 0,
            shards_read: 0,
            records: Counts::default(),
            parts: 0,
            rows: None,
            found: Findings::default(),
        };
        let succeeded = instance.status == InstanceStatus::Succeeded;
        let Some((content, _)) = read_whole(&*self.objects, &name).await? else {
            if !succeeded {
                let status = instance.status.name();
                return Err(EngineError::NotPublished { instance: id.clone(), status });
            }
            let message = "it isn't there, though the instance has succeeded";
            verified.found.push(Finding::new(Check::Certificate, name.to_string(), message));
            return Ok(verified);
        };
        let certificate: Certificate = match serde_json::from_slice(&content) {
            Ok(certificate) => certificate,
            Err(error) => {
                let message = format!("it can't be read: {error}");
                verified.found.push(Finding::new(Check::Certificate, name.to_string(), message));
                return Ok(verified);
            }
        };
        if !succeeded && certificate.instance.0 == instance.id && certificate.generation < instance.generation {
            return Err(EngineError::PublishedEarlier {
                instance: id.clone(),
                published: certificate.generation,
                generation: instance.generation,
            });
        }
        verified.generation = certificate.generation;
        verified.shards = certificate.shards.len() as u64;
        verified.parts = certificate.parts.len() as u64;
        verified.found.extend(verify::certificate(&certificate, &instance));
        let mut accounts: BTreeMap<GroupNo, Vec<&ShardAccount>> = BTreeMap::new();
        for account in &certificate.shards {
            accounts.entry(account.id.group()).or_default().push(account);
        }
        let work = self.works.for_instance(&spec.spec, id)?;
        let merge = work.merge();
        let mut verifying =
            Verifying { engine: self, instance: &instance, spec: &spec, work, merge, accounts, verified };
        verifying.boundary(&certificate).await?;
        verifying.parts(&certificate).await
    }
}

impl<'a> Verifying<'a> {
    fn find(&mut self, check: Check, place: impl Into<String>, message: impl Into<String>) {
        self.verified.found.push(Finding::new(check, place, message));
    }

    /// The manifest, the cover, and each shard of it.
    async fn boundary(&mut self, certificate: &Certificate) -> Result<(), EngineError> {
        let name = in_state(&self.engine.settings.state, &manifest_key(&self.instance.run()));
        let Some((content, _)) = read_whole(&*self.engine.objects, &name).await? else {
            self.find(Check::Manifest, name.to_string(), "it isn't there");
            return Ok(());
        };
        let digest = Manifest::digest(&content);
        if digest != certificate.manifest_digest {
            let message = format!("its digest is {digest}, and the certificate says {}", certificate.manifest_digest);
            self.find(Check::Manifest, name.to_string(), message);
        }
        let manifest = match Manifest::decode(&content) {
            Ok(manifest) => manifest,
            Err(error) => {
                self.find(Check::Manifest, name.to_string(), error.to_string());
                return Ok(());
            }
        };
        let boundary = manifest.boundary.range();
        self.verified.found.extend(verify::cover(certificate, boundary));
        if self.verified.found.is_empty() {
            self.verified.found.extend(verify::whole(certificate, self.instance, boundary));
        }
        for number in 0..manifest.pages.len() as u32 {
            self.group(&manifest, number).await?;
        }
        for account in std::mem::take(&mut self.accounts).into_values().flatten() {
            self.find(Check::Shard, account.id.to_string(), "the manifest has no such shard");
        }
        Ok(())
    }

    /// A page of the manifest: its objects, and the shards of its group.
    async fn group(&mut self, manifest: &Manifest, number: u32) -> Result<(), EngineError> {
        let accounts = self.accounts.remove(&GroupNo(number)).unwrap_or_default();
        let stored = self.engine.group_shards(&self.instance.run(), GroupNo(number)).await?;
        for account in &accounts {
            let shard = stored.iter().find(|shard| shard.key.shard == account.id);
            self.verified.found.extend(verify::shard_in_table(account, shard));
        }
        for shard in &stored {
            if !accounts.iter().any(|account| account.id == shard.key.shard) {
                self.find(Check::Shard, shard.key.shard.to_string(), "the table has it, and the certificate hasn't");
            }
        }
        let Some(page) = self.page(manifest, number).await? else { return Ok(()) };
        let mut changed = Vec::new();
        if let BoundaryKind::Objects { root, .. } = &manifest.boundary {
            // An object that is cut is in several shards.
            let of_page = page.shards.iter().flat_map(|plan| &plan.objects).map(|object| (object.index, object));
            let objects: BTreeMap<u32, &ManifestObject> = of_page.collect();
            changed = self.changed_objects(root, objects.into_values().collect()).await?;
        }
        for account in accounts {
            let Some(plan) = page.plan_of(&account.id) else {
                self.find(Check::Shard, account.id.to_string(), "its page of the manifest hasn't got it");
                continue;
            };
            let plan = match plan.part(account.id.clone(), account.range) {
                Ok(plan) => plan,
                Err(error) => {
                    self.find(Check::Shard, account.id.to_string(), error.to_string());
                    continue;
                }
            };
            // Told already, object by object.
            if plan.objects.iter().all(|object| !changed.contains(&object.index)) {
                let shard = stored.iter().find(|shard| shard.key.shard == account.id);
                self.shard(account, shard, plan).await?;
            }
        }
        Ok(())
    }

    /// A page that is what the manifest names, and what there is to say about it where it isn't.
    async fn page(&mut self, manifest: &Manifest, number: u32) -> Result<Option<ManifestPage>, EngineError> {
        let Some(reference) = manifest.pages.get(number as usize) else { return Ok(None) };
        let name = in_state(&self.engine.settings.state, &reference.key);
        let page = match read_whole(&*self.engine.objects, &name).await {
            Ok(Some((content, _))) => manifest.decode_page(number, &content).map_err(|error| error.to_string()),
            Ok(None) => Err("it isn't there".to_owned()),
            Err(error) => Err(about_itself(error)?),
        };
        match page {
            Ok(page) => Ok(Some(page)),
            Err(message) => {
                self.find(Check::Page, name.to_string(), message);
                Ok(None)
            }
        }
    }

    /// Those of the objects that aren't as they were when the boundary was fixed.
    async fn changed_objects(&mut self, root: &Root, objects: Vec<&ManifestObject>) -> Result<Vec<u32>, EngineError> {
        let engine = self.engine;
        let count = objects.len() as u64;
        let heads = stream::iter(objects).map(|object| async move {
            let name = ObjectName { root: root.clone(), key: object.key.clone() };
            let message = match engine.objects.head(&name).await {
                Ok(None) => Some("it isn't there any more".to_owned()),
                Ok(Some(meta)) if meta.size != object.size => {
                    Some(format!("it has {} bytes, and had {} when the boundary was fixed", meta.size, object.size))
                }
                Ok(Some(meta)) if meta.etag != object.etag => {
                    let (now, then) = (&meta.etag.0, &object.etag.0);
                    Some(format!("its tag is {now}, and was {then} when the boundary was fixed: it was written since"))
                }
                Ok(Some(_)) => None,
                Err(error) => Some(about_itself(error)?),
            };
            Ok::<_, EngineError>(message.map(|message| (object.index, name, message)))
        });
        let heads: Vec<_> = heads.buffered(VERIFY_HEADS_AT_ONCE).try_collect().await?;
        self.verified.objects += count;
        let mut indices = Vec::new();
        for (index, name, message) in heads.into_iter().flatten() {
            self.find(Check::Input, name.to_string(), message);
            indices.push(index);
        }
        Ok(indices)
    }
}

/// What an error says about the object itself; any other is the caller's.
fn about_itself(error: ObjectsError) -> Result<String, EngineError> {
    match error {
        ObjectsError::NotFound { .. } | ObjectsError::Changed { .. } | ObjectsError::Name { .. } => {
            Ok(error.to_string())
        }
        error => Err(error.into()),
    }
}

/// What an error says about the input or the work on it; any other is the caller's.
fn about_input(error: EngineError) -> Result<String, EngineError> {
    match &error {
        EngineError::Input(input) if !input.is_retryable() => Ok(error.full_text()),
        EngineError::Work(work) if !work.is_retryable() => Ok(error.full_text()),
        EngineError::Objects(_) => match error {
            EngineError::Objects(error) => about_itself(error),
            error => Err(error),
        },
        _ => Err(error),
    }
}
