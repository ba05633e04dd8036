//! What receives effects: a server over HTTP that keeps ids and compares tokens, as one is to, and the few requests to a
//! stand-in of SQS that a reader of a queue makes.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use serde_json::{Value, json};

/// A request that brought an effect which the receiver hadn't had.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) id: String,
    pub(crate) shard: String,
    pub(crate) body: Value,
}

#[derive(Debug, Default)]
struct State {
    taken: Vec<Taken>,
    /// Requests that brought an effect, known ones too.
    posts: usize,
    /// Tokens that were brought without one.
    installs: usize,
    highest: BTreeMap<String, u64>,
    /// Texts in a body for which it is refused.
    refuses: Vec<&'static str>,
    /// How many effects are taken; requests that come beyond wait unanswered.
    holds_at: Option<usize>,
}

/// What requests are answered by, and the sign that there may be more room.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    room: Condvar,
}

/// The server.
pub(crate) struct Receiver {
    pub(crate) url: String,
    shared: Arc<Shared>,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/payments", listener.local_addr().unwrap());
        let shared = Arc::<Shared>::default();
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = Arc::clone(&served);
                // A client that was killed leaves half a request; that is no matter of ours.
                std::thread::spawn(move || stream.ok().and_then(|stream| serve(stream, &shared)));
            }
        });
        Self { url, shared }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap()
    }

    /// Takes so many effects in all and not one more until it is told of a higher number, so that whoever sends can be
    /// met in the middle, however fast it is. What waits then is answered, even if its sender is gone by that time: a
    /// request that was long on its way.
    pub(crate) fn hold_at(&self, taken: Option<usize>) {
        self.state().holds_at = taken;
        self.shared.room.notify_all();
    }

    pub(crate) fn taken(&self) -> Vec<Taken> {
        self.state().taken.clone()
    }

    pub(crate) fn posts(&self) -> usize {
        self.state().posts
    }

    pub(crate) fn installs(&self) -> usize {
        self.state().installs
    }

    pub(crate) fn refuse(&self, part: &'static str) {
        self.state().refuses.push(part);
    }

    pub(crate) fn refuse_nothing(&self) {
        self.state().refuses.clear();
    }
}

/// A request: its first line, its headers by their names in lower case, and its body.
fn read(stream: &mut TcpStream) -> Option<(String, BTreeMap<String, String>, String)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let (line, rest) = head.split_once("\r\n").unwrap_or((head, ""));
            let header =
                |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
            let headers: BTreeMap<String, String> = rest.lines().filter_map(header).collect();
            let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                return Some((line.to_owned(), headers, body.to_owned()));
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> Option<()> {
    let (line, headers, body) = read(&mut stream)?;
    let is_effect = headers.contains_key("idempotency-key");
    let is_full = |state: &mut State| is_effect && state.holds_at.is_some_and(|most| state.taken.len() >= most);
    let mut state = shared.room.wait_while(shared.state.lock().unwrap(), is_full).unwrap();
    let (status, text) = answer(&line, &headers, &body, &mut state);
    drop(state);
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", text.len());
    stream.write_all(format!("{head}{text}").as_bytes()).ok()
}

fn answer(line: &str, headers: &BTreeMap<String, String>, body: &str, state: &mut State) -> (u16, &'static str) {
    let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
    let shard = header("shardcron-shard");
    let token: u64 = header("shardcron-token").parse().unwrap_or(0);
    let highest = state.highest.entry(format!("{} {shard}", header("shardcron-instance"))).or_default();
    if token < *highest {
        return (412, "a higher token was here");
    }
    *highest = token;
    if line.starts_with("PUT ") && header("shardcron-install") == "1" {
        state.installs += 1;
        return (204, "");
    }
    state.posts += 1;
    if state.refuses.iter().any(|part| body.contains(part)) {
        return (422, "no such account");
    }
    let id = header("idempotency-key");
    if state.taken.iter().any(|taken| taken.id == id) {
        return (200, "known");
    }
    let body = serde_json::from_str(body).unwrap_or(Value::Null);
    state.taken.push(Taken { id, shard, body });
    (201, "taken")
}

/// A request to SQS's stand-in at this endpoint, in its JSON protocol.
pub(crate) fn sqs(endpoint: &str, action: &str, request: &Value) -> Value {
    let host = endpoint.trim_start_matches("http://");
    let body = request.to_string();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/x-amz-json-1.0\r\nx-amz-target: AmazonSQS.{action}\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(host).unwrap();
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or(json!({}))
}
