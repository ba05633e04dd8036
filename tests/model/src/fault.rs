//! Faults that are built into a model on purpose: each takes one rule away.

/// A rule that a copy of a model is without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The store doesn't look at an owner's token and version.
    NoTokenCheck,
    /// The store looks at an owner's token, and not at the version.
    NoVersionCheck,
    /// A claim keeps the token.
    ClaimKeepsToken,
    /// The checkpoint is written first, and the results in a write after it.
    CheckpointFirst,
    /// The results are written first, and the checkpoint in a write after it.
    ResultFirst,
    /// The prefix of the checkpoint moves to the end of the batch that was committed last.
    GapSkipped,
    /// Rows are read once, whether or not they agree with the shard's counts.
    RowsUnsettled,
    /// A claim doesn't ask how often the shard has failed.
    BackoffIgnored,
    /// A done shard is opened for another attempt.
    DoneReopened,
    /// A split shrinks the parent in one write, and puts the child in another.
    SplitInTwoWrites,
    /// An instance's end is written before its open shards are fenced.
    EndBeforeFence,
    /// Whoever stops an instance looks for open shards once, and not until a look finds none.
    LooksOnce,
    /// The fence closes the shard and leaves its token, and the store looks at the token only.
    FenceKeepsToken,
    /// A group's done set is a number, to which each report adds, and finalize believes it.
    CounterForSet,
    /// A step's writes aren't conditioned on the instance's version.
    StepUnconditioned,
    /// Finalize neither waits for the done sets nor asks whether the shards are done.
    PublishUnfinished,
    /// A certificate is put whatever stands in its place.
    CertificateOverwrites,
    /// A retry opens the instance under the same attempt and token.
    RetryKeepsAttempt,
    /// Each fan-out lists and cuts the input anew.
    BoundaryNotFixed,
    /// A planning step isn't conditioned on the job's version.
    PlanWithoutVersion,
    /// A new instance is written whether or not there is one.
    InstanceNotAbsent,
    /// A slot is written on a look at it, without its version.
    SlotByLook,
    /// The instance that takes another's place starts at once.
    ReplacerStartsAtOnce,
}
