//! A thread with a runtime of its own that serves one port of 127.0.0.1 until it is dropped.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};

use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::error::EmbeddedError;

/// Connections that wait to be accepted: more than the clients of one machine open at once.
const BACKLOG: u32 = 1024;

/// The running server. Its drop ends all connections, drops what they served, and waits for that.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a thread of this name, which prepares (outside of its runtime, so it may block on it) and then drives
    /// what `prepare` returns.
    ///
    /// The runtime has one thread: dropping it drops every connection's task there and then, so that when the drop
    /// returns, nothing of the server is left, its files included.
    pub(crate) fn start<P, S>(name: &'static str, prepare: P) -> Result<Self, EmbeddedError>
    where
        P: FnOnce(&Runtime, TcpListener, SocketAddr) -> Result<S, EmbeddedError> + Send + 'static,
        S: Future<Output = ()>,
    {
        let (ready, started) = mpsc::sync_channel(1);
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            let runtime = match runtime_and_port(name).and_then(|(runtime, listener, address)| {
                let serving = prepare(&runtime, listener, address)?;
                Ok((runtime, serving, address))
            }) {
                Ok((runtime, serving, address)) => {
                    // Nobody listens any more: whoever started this has panicked, and the stop is signalled too.
                    let _ = ready.send(Ok(address));
                    runtime.block_on(async {
                        tokio::select! {
                            () = serving => {}
                            _ = stopped => {}
                        }
                    });
                    runtime
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                    return;
                }
            };
            drop(runtime);
        };
        let failed = |source| EmbeddedError::Serve { what: name, source };
        let thread = Builder::new().name(name.to_owned()).spawn(serve).map_err(failed)?;
        let address = started.recv().map_err(|_| failed(io::Error::other("its thread has panicked")))??;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens, as the AWS SDK takes it: `http://127.0.0.1:PORT`.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // An error means that it has ended by itself.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!(address = %self.address, "the embedded server's thread has panicked");
        }
    }
}

fn runtime_and_port(name: &'static str) -> Result<(Runtime, TcpListener, SocketAddr), EmbeddedError> {
    let failed = |source| EmbeddedError::Serve { what: name, source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let (listener, address) = {
        let _context = runtime.enter();
        listen().map_err(failed)?
    };
    Ok((runtime, listener, address))
}

/// An ephemeral port whose connections answer without Nagle's delay. Accepted connections inherit the option on Linux
/// and the BSDs, macOS among them; neither server has a way to set it on each.
fn listen() -> io::Result<(TcpListener, SocketAddr)> {
    let socket = TcpSocket::new_v4()?;
    socket.set_nodelay(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let listener = socket.listen(BACKLOG)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn accepted_connections_inherit_nodelay() {
        let (listener, address) = listen().unwrap();
        let (client, accepted) = tokio::join!(tokio::net::TcpStream::connect(address), listener.accept());
        let (accepted, peer) = accepted.unwrap();
        assert!(accepted.nodelay().unwrap());
        assert_eq!(client.unwrap().local_addr().unwrap(), peer);
    }

    #[test]
    fn a_panic_while_preparing_is_an_error() {
        let failed =
            Server::start("test", |_, _, _| -> Result<std::future::Ready<()>, EmbeddedError> { panic!("on purpose") });
        assert!(matches!(failed, Err(EmbeddedError::Serve { .. })), "{failed:?}");
    }

    #[tokio::test]
    async fn starting_and_dropping_within_a_runtime_is_fine() {
        let server = Server::start("test", |_, listener, _| {
            Ok(async move {
                let _listener = listener;
                std::future::pending::<()>().await;
            })
        })
        .unwrap();
        let address = server.address;
        assert!(address.ip().is_loopback());
        drop(server);
        assert!(tokio::net::TcpStream::connect(address).await.is_err());
    }
}
