//! What the tests of works share: chunks from CSV text, and a shard driven as the engine drives it.

use std::sync::Arc;

use shardcron_domain::boundary::{ObjectPosition, Position};
use shardcron_domain::job::AggregateSpec;
use shardcron_domain::record::{Chunk, Source};
use shardcron_domain::result::{OutputTable, RejectRow, ResultRow};
use shardcron_work::{Aggregate, Room, Work};

/// Room that is never full.
pub(crate) const ROOMY: Room = Room { rows: usize::MAX, bytes: usize::MAX, records: usize::MAX, rejects: usize::MAX };

pub(crate) fn aggregate(
    group_by: &[&str],
    count: bool,
    sum: &[&str],
    min: &[&str],
    max: &[&str],
    nulls: &[&str],
) -> Aggregate {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let spec = AggregateSpec { group_by: owned(group_by), count, sum: owned(sum), min: owned(min), max: owned(max) };
    Aggregate::new(spec, &owned(nulls))
}

/// The records of a CSV text without quotes, in chunks of at most so many records.
pub(crate) fn chunks(name: &str, text: &str, records: usize) -> Vec<Chunk> {
    let (header, body) = text.split_once('\n').expect("there is a header");
    let columns = header.split(',').map(str::to_owned).collect();
    let source = Arc::new(Source { name: name.to_owned(), columns: Some(columns) });
    let at = |offset: usize, line: u64| Position::Object(ObjectPosition { object: 0, offset: offset as u64, line });
    let mut offset = header.len() + 1;
    let mut chunks = vec![Chunk::new(Arc::clone(&source))];
    for (index, record) in body.lines().enumerate() {
        let line = index as u64 + 2;
        let end = offset + record.len() + 1;
        if chunks.last().is_some_and(|chunk| chunk.len() == records) {
            chunks.push(Chunk::new(Arc::clone(&source)));
        }
        let chunk = chunks.last_mut().expect("there is one from the start");
        chunk.push_row(at(offset, line - 1), at(end, line), line, record.split(','));
        offset = end;
    }
    chunks
}

/// Takes all records of the chunks in one batch: the rows and the rejects.
pub(crate) async fn run(work: &dyn Work, chunks: &[Chunk]) -> (Vec<ResultRow>, Vec<RejectRow>) {
    let mut shard = work.open(Vec::new()).expect("no rows are good rows");
    let mut rejects = Vec::new();
    for chunk in chunks {
        let processed = shard.process(chunk, 0, ROOMY).await.expect("the records can be worked on");
        assert_eq!((processed.taken, processed.full), (chunk.len(), false));
        rejects.extend(processed.rejects);
    }
    (shard.changes(), rejects)
}

/// The output of these rows.
pub(crate) fn merged(work: &dyn Work, rows: impl IntoIterator<Item = ResultRow>) -> OutputTable {
    let mut merge = work.merge();
    for row in rows {
        merge.add(row).expect("the work has written the row");
    }
    merge.finish().expect("the rows make an output")
}
