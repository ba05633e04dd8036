//! Reads the CSV files of a directory as a shard's executor does, and prints how many records they have.
//!
//! For measuring: `time cargo run --release -p shardcron-input --example read -- DIRECTORY/`.
#![expect(clippy::print_stdout, reason = "a command's output")]

use std::error::Error;
use std::sync::Arc;

use shardcron_domain::record::Format;
use shardcron_input::{InputFormat, ShardReader, cut_objects, list_objects};
use shardcron_objects::local::LocalObjects;
use shardcron_objects::{Location, Objects};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let place = std::env::args().nth(1).ok_or("name a directory, by its absolute path")?;
    let location = Location::parse(&place, "/")?;
    let objects: Arc<dyn Objects> = Arc::new(LocalObjects::new("/nonexistent".into()));
    let (mut records, mut malformed) = (0, 0);
    let listed = list_objects(&*objects, &location).await?;
    let cut = cut_objects(location.root.clone(), listed.into_iter().map(Into::into).collect(), u64::MAX);
    for plan in cut.plans {
        let format = InputFormat::new(Format::Csv);
        let from = plan.range.from();
        let mut reader = ShardReader::open(Arc::clone(&objects), location.root.clone(), &plan, &format, from)?;
        while let Some(chunk) = reader.next().await? {
            records += chunk.len();
            malformed += chunk.records().filter(|record| record.malformed().is_some()).count();
        }
    }
    println!("{records} records, {malformed} malformed");
    Ok(())
}
