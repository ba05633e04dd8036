//! `verify` proves what is published, and finds each thing that isn't as it was.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Published, Site, each};

const AT: &str = "2026-01-05T00:00:00Z";

const INSTANCE: &str = "ledger:2026-01-05T00:00:00Z";

/// A published instance of four shards, with two records rejected.
struct Ledger {
    site: Site,
    published: Published,
}

const FILES: [&str; 4] = [
    "city,amount\nOslo,1\nBergen,2\n",
    "city,amount\nOslo,x1\nBergen,3\n",
    "city,amount\nOslo,4.5\n",
    "city,amount\nOslo,x2\nTromsø,-1\n",
];

impl Ledger {
    fn new() -> Self {
        let site = Site::new();
        for (number, content) in FILES.iter().enumerate() {
            site.write(&format!("in/{number}.csv"), content);
        }
        site.job("job.json", &job("csv"));
        let published = Published::of(&site.run(&["local", "run", "job.json", "--at", AT, "--json"]).exits(0));
        assert_eq!(published.records(), [7, 5, 2], "{}", published.certificate);
        Self { site, published }
    }

    fn place(&self) -> PathBuf {
        PathBuf::from(self.published.summary["output"].as_str().unwrap())
    }

    fn part(&self) -> PathBuf {
        self.place().join(self.published.certificate["parts"][0]["name"].as_str().unwrap())
    }

    /// Changes the certificate as it is stored.
    fn recertify(&self, change: impl FnOnce(&mut Value)) {
        let mut certificate = self.published.certificate.clone();
        change(&mut certificate);
        fs::write(self.place().join("_certificate.json"), serde_json::to_vec_pretty(&certificate).unwrap()).unwrap();
    }

    fn manifest(&self) -> PathBuf {
        self.site.path(".shardcron/state/manifests/ledger/20260105T000000Z/g1/manifest.json")
    }

    fn page(&self) -> PathBuf {
        let pages = fs::read_dir(self.manifest().parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
        pages.into_iter().find(|path| path.to_string_lossy().contains("page-")).unwrap()
    }

    fn verified(&self, code: i32) -> Value {
        let run = self.site.run(&["--local", "verify", INSTANCE, "--json"]).exits(code);
        if code == 1 {
            assert_eq!(run.error().kind, "not_proven", "{run:?}");
        }
        run.json()
    }
}

fn job(format: &str) -> Value {
    json!({
        "name": "ledger", "schedule": "0 0 * * *", "input": { "objects": "in/", "format": "csv" },
        "shards": { "targetBytes": 1 }, "rejects": { "max": 2 },
        "work": { "aggregate": { "groupBy": ["city"], "count": true, "sum": ["amount"] } },
        "output": { "objects": "out/", "format": format },
    })
}

/// Changes one byte of a file.
fn spoil(path: &Path) {
    let mut content = fs::read(path).unwrap();
    let last = content.len() - 3;
    content[last] ^= 1;
    fs::write(path, content).unwrap();
}

/// Replaces a text of a file by another.
fn replace(path: &Path, from: &str, to: &str) {
    let content = fs::read_to_string(path).unwrap();
    assert!(content.contains(from), "{content}");
    fs::write(path, content.replacen(from, to, 1)).unwrap();
}

#[test]
fn what_is_published_is_proven_in_either_format() {
    for format in ["csv", "ndjson"] {
        let ledger = Ledger::new();
        ledger.site.job("job.json", &job(format));
        ledger.site.run(&["--local", "apply", "job.json"]).exits(0);
        if format == "ndjson" {
            ledger.site.run(&["--local", "rerun", INSTANCE]).exits(0);
            // The published output is of the generation before: what that ran under isn't known any more.
            let error = ledger.site.run(&["--local", "verify", INSTANCE, "--json"]).exits(2).error();
            assert_eq!(error.kind, "not_published", "{error:?}");
            ledger.site.run(&["local", "run", "job.json", "--at", AT, "--json"]).exits(0);
        }
        let verified = ledger.verified(0);
        assert_eq!(verified["proven"], true, "{verified}");
        assert_eq!(verified["findings"], json!([]));
        assert_eq!(verified["records"], json!({ "in": 7, "out": 5, "rejected": 2 }));
        let counts = ["objects", "shards", "shardsRead", "parts", "rows"].map(|name| verified[name].as_u64().unwrap());
        assert_eq!(counts, [4, 4, 4, 1, 3]);
        let text = ledger.site.run(&["--local", "verify", INSTANCE]).exits(0).text();
        assert!(text.starts_with(&format!("{INSTANCE}  proven\n")), "{text}");
    }
}

#[test]
fn a_result_of_several_groups_of_shards_is_proven() {
    let site = Site::new();
    for number in 0..120 {
        site.write(&format!("in/{number:03}.csv"), format!("city,amount\nOslo,{number}\n"));
    }
    site.job("job.json", &job("csv"));
    site.run(&["local", "run", "job.json", "--at", AT, "--json", "--workers", "8"]).exits(0);
    let verified = site.run(&["--local", "verify", INSTANCE, "--json"]).exits(0).json();
    assert_eq!((verified["shardsRead"].as_u64(), verified["records"]["in"].as_u64()), (Some(120), Some(120)));
}

/// A change to what is there, and the finding that it must lead to: its check, and texts in its place and its message.
type Tampering = (&'static str, fn(&Ledger), &'static str, &'static str, &'static str);

const TAMPERINGS: &[Tampering] = &[
    ("a byte of a part", |ledger| spoil(&ledger.part()), "part", ", line 4", "isn't what the input gives"),
    ("a byte of a part, by its digest", |ledger| spoil(&ledger.part()), "part", "part-00000", "its digest"),
    (
        "a part that is cut off",
        |ledger| {
            let content = fs::read(ledger.part()).unwrap();
            fs::write(ledger.part(), &content[..content.len() - 5]).unwrap();
        },
        "part",
        "part-00000",
        "its bytes",
    ),
    ("a part removed", |ledger| fs::remove_file(ledger.part()).unwrap(), "part", "part-00000", "isn't there"),
    (
        "a part and its digest forged together",
        |ledger| {
            replace(&ledger.part(), "Oslo,2,5.5", "Oslo,2,6.5");
            let digest = sha256(&fs::read(ledger.part()).unwrap());
            ledger.recertify(|certificate| certificate["parts"][0]["sha256"] = json!(digest));
        },
        "part",
        ", line 3",
        "isn't what the input gives",
    ),
    (
        "a part that the certificate hasn't",
        |ledger| {
            ledger.recertify(|certificate| certificate["parts"] = json!([]));
        },
        "part",
        "",
        "gives 3 rows, and the parts have 0",
    ),
    (
        "a row too many",
        |ledger| {
            ledger.recertify(|certificate| certificate["parts"][0]["rows"] = json!(4));
        },
        "part",
        "",
        "gives 3 rows, and the parts have 4",
    ),
    (
        "a part's name",
        |ledger| {
            fs::rename(ledger.part(), ledger.place().join("g1/other.csv")).unwrap();
            ledger.recertify(|certificate| certificate["parts"][0]["name"] = json!("g1/other.csv"));
        },
        "part",
        "g1/other.csv",
        "its name is g1/part-00000-",
    ),
    (
        "a shard's count",
        |ledger| {
            ledger.recertify(|certificate| certificate["shards"][2]["recordsIn"] = json!(2));
        },
        "shard",
        "00002",
        "records in, when its input is read again: the certificate says 2, and it is 1",
    ),
    (
        "counts that don't add up",
        |ledger| {
            ledger.recertify(|certificate| certificate["shards"][2]["recordsIn"] = json!(2));
        },
        "shard",
        "00002",
        "2 records in aren't 1 out and 0 rejected",
    ),
    (
        "a shard's rejects",
        |ledger| {
            ledger.recertify(|certificate| certificate["shards"][1]["rejected"] = json!(0));
        },
        "rejects",
        "00001",
        "the certificate says 0, and it is 1",
    ),
    (
        "a shard's takeovers",
        |ledger| {
            ledger.recertify(|certificate| certificate["shards"][0]["takeovers"] = json!(1));
        },
        "shard",
        "00000",
        "its takeovers, in the table: the certificate says 1",
    ),
    (
        "a total",
        |ledger| {
            ledger.recertify(|certificate| certificate["totals"]["recordsOut"] = json!(6));
        },
        "totals",
        "totals",
        "records out: the totals say 6, and the shards' accounts add up to 5",
    ),
    (
        "a shard's range that reaches into the next",
        |ledger| {
            ledger.recertify(|certificate| certificate["shards"][1]["range"]["to"]["object"]["o"] = json!(3));
        },
        "cover",
        "00002",
        "it begins at object 2 byte 0, and shard 00001 reaches to object 3 byte 0",
    ),
    (
        "a shard's range that ends early",
        |ledger| {
            ledger.recertify(|certificate| certificate["shards"][3]["range"]["to"]["object"]["o"] = json!(3));
        },
        "cover",
        "the end",
        "no shard has the part from object 3 byte 0 to object 4 byte 0",
    ),
    (
        "a shard that is there twice",
        |ledger| {
            ledger.recertify(|certificate| {
                let again = certificate["shards"][1].clone();
                certificate["shards"].as_array_mut().unwrap().push(again);
            });
        },
        "certificate",
        "00001",
        "the shard is there twice",
    ),
    (
        "a shard left out",
        |ledger| {
            ledger.recertify(|certificate| {
                certificate["shards"].as_array_mut().unwrap().remove(1);
            });
        },
        "cover",
        "00002",
        "no shard has the part from object 1 byte 0 to object 2 byte 0",
    ),
    (
        "a shard left out, by the table",
        |ledger| {
            ledger.recertify(|certificate| {
                certificate["shards"].as_array_mut().unwrap().remove(1);
            });
        },
        "shard",
        "00001",
        "the table has it",
    ),
    (
        "a shard that is nowhere",
        |ledger| {
            ledger.recertify(|certificate| certificate["shards"][3]["id"] = json!("00777"));
        },
        "shard",
        "00777",
        "the manifest has no such shard",
    ),
    (
        "another generation",
        |ledger| {
            ledger.recertify(|certificate| certificate["generation"] = json!(2));
        },
        "certificate",
        "",
        "the generation: the certificate says 2, and it is 1",
    ),
    (
        "another instance",
        |ledger| {
            ledger.recertify(|certificate| certificate["instance"] = json!("other:2026-01-05T00:00:00Z"));
        },
        "certificate",
        "",
        "the instance: the certificate says other:",
    ),
    (
        "a certificate that isn't one",
        |ledger| {
            fs::write(ledger.place().join("_certificate.json"), "{}").unwrap();
        },
        "certificate",
        "_certificate.json",
        "can't be read",
    ),
    (
        "no certificate",
        |ledger| {
            fs::remove_file(ledger.place().join("_certificate.json")).unwrap();
        },
        "certificate",
        "_certificate.json",
        "isn't there",
    ),
    (
        "an input object changed",
        |ledger| {
            ledger.site.write("in/1.csv", "city,amount\nOslo,x1\nBergen,4\n");
        },
        "input",
        "in/1.csv",
        "it was written since",
    ),
    (
        "an input object that grew",
        |ledger| {
            ledger.site.write("in/1.csv", "city,amount\nOslo,x1\nBergen,30\n");
        },
        "input",
        "in/1.csv",
        "it has 30 bytes, and had 29",
    ),
    (
        "an input object removed",
        |ledger| {
            fs::remove_file(ledger.site.path("in/2.csv")).unwrap();
        },
        "input",
        "in/2.csv",
        "isn't there any more",
    ),
    (
        "the manifest changed",
        |ledger| {
            replace(&ledger.manifest(), "\"version\":1", "\"version\": 1");
        },
        "manifest",
        "manifest.json",
        "its digest is",
    ),
    (
        "the manifest removed",
        |ledger| fs::remove_file(ledger.manifest()).unwrap(),
        "manifest",
        "manifest.json",
        "isn't there",
    ),
    (
        "a page of the manifest changed",
        |ledger| {
            replace(&ledger.page(), "2.csv", "7.csv");
        },
        "page",
        "page-00000",
        "its digest is",
    ),
    (
        "a page of the manifest removed",
        |ledger| fs::remove_file(ledger.page()).unwrap(),
        "page",
        "page-00000",
        "isn't there",
    ),
];

fn sha256(content: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn each_thing_that_was_tampered_with_is_found_and_named() {
    each(TAMPERINGS, 3, |(what, tamper, check, place, message)| {
        let ledger = Ledger::new();
        tamper(&ledger);
        let verified = ledger.verified(1);
        assert_eq!(verified["proven"], false, "{what}: {verified}");
        let findings = verified["findings"].as_array().unwrap();
        let text = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
        let is_it = |finding: &&Value| {
            text(finding, "check") == *check
                && text(finding, "place").contains(place)
                && text(finding, "message").contains(message)
        };
        assert!(findings.iter().any(|finding| is_it(&finding)), "{what}: {verified:#}");
    });
}

#[test]
fn what_has_changed_is_told_once_and_all_else_is_still_looked_at() {
    let ledger = Ledger::new();
    fs::remove_file(ledger.site.path("in/0.csv")).unwrap();
    ledger.site.write("in/3.csv", "city,amount\n");
    let verified = ledger.verified(1);
    let checks: Vec<&str> =
        verified["findings"].as_array().unwrap().iter().map(|finding| finding["check"].as_str().unwrap()).collect();
    assert_eq!(checks, ["input", "input"], "{verified}");
    assert_eq!((verified["shardsRead"].as_u64(), verified["rows"].as_u64()), (Some(2), None), "{verified}");
    let text = ledger.site.run(&["--local", "verify", INSTANCE]).exits(1);
    assert!(text.text().contains("not proven") && text.text().contains("in/0.csv"), "{text:?}");
}

#[test]
fn what_isnt_there_to_be_verified_is_a_wrong_request() {
    let ledger = Ledger::new();
    for (instance, kind) in [
        ("ledger:2026-01-06T00:00:00Z", "no_instance"),
        ("ledger", "value"),
        ("none:2026-01-05T00:00:00Z", "no_instance"),
    ] {
        let error = ledger.site.run(&["--local", "verify", instance, "--json"]).exits(2).error();
        assert_eq!(error.kind, kind, "{error:?}");
    }
    let mut failing = job("csv");
    failing["name"] = json!("failing");
    failing["rejects"]["max"] = json!(0);
    ledger.site.job("failing.json", &failing);
    ledger.site.run(&["local", "run", "failing.json", "--at", AT, "--json"]).exits(1);
    let error = ledger.site.run(&["--local", "verify", &format!("failing:{AT}"), "--json"]).exits(2).error();
    assert_eq!(error.kind, "not_published", "{error:?}");
    assert!(error.message.contains("Failed"), "{error:?}");
}

#[test]
fn rejects_are_listed_with_their_file_line_and_reason() {
    let ledger = Ledger::new();
    let run = |more: &[&str]| ledger.site.run(&[&["--local", "rejects", INSTANCE], more].concat()).exits(0);
    let listed = run(&["--json"]).json();
    let rejects = listed["rejects"].as_array().unwrap();
    assert_eq!(rejects.len(), 2, "{listed}");
    for (reject, (file, shard, value)) in rejects.iter().zip([("in/1.csv", "00001", "x1"), ("in/3.csv", "00003", "x2")])
    {
        assert!(reject["file"].as_str().unwrap().ends_with(file), "{reject}");
        assert_eq!((reject["line"].as_u64(), reject["byte"].as_u64()), (Some(2), Some(12)), "{reject}");
        assert_eq!(reject["shard"], shard);
        let reason = reject["reason"].as_str().unwrap();
        assert!(reason.contains("amount") && reason.contains(value), "{reject}");
    }
    let lines: Vec<Value> =
        run(&["--format", "ndjson"]).text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(&lines, rejects);
    let csv = run(&["--format", "csv"]).text();
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!((rows.len(), rows[0]), (3, "file,line,byte,shard,reason"), "{csv}");
    assert!(rows[2].contains("in/3.csv,2,12,00003,"), "{csv}");
    let text = run(&[]).text();
    assert!(text.lines().next().unwrap().contains("in/1.csv:2: column `amount`"), "{text}");
    let error = ledger.site.run(&["--local", "rejects", "ledger:2026-01-07T00:00:00Z", "--json"]).exits(2).error();
    assert_eq!(error.kind, "no_instance");
}
