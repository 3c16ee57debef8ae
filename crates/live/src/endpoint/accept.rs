//! How a server accepts a connection: the first message, the handshake, the key.

use super::channel::{Answered, Channel, PATIENCE, Within, answer};
use super::control::{self, Answer, Greeting, MAX_GREETING, VERSION};
use super::server::{Shared, locked};
use std::io;
use std::net::IpAddr;
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
use std::net::TcpStream;

#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
impl Shared {
    /// Reads a client's greeting. Returns the channel if the client's half of the handshake matches the key, if the
    /// server has one. That the client itself has the key, and has not replayed another's handshake, is shown only by
    /// its first message in the channel ([`Shared::check_first_message`]). `None` if the client was refused, or a
    /// kernel-TCP flow takes the connection.
    pub(super) fn greet(&self, stream: TcpStream, ip: IpAddr) -> io::Result<Option<Channel>> {
        let greeting = control::read(&mut Within::of(&stream, PATIENCE), MAX_GREETING)?;
        let no = |answer: &Answer| {
            control::write(&mut Within::of(&stream, PATIENCE), answer)?;
            Ok(None)
        };
        let (keyed, handshake) = match greeting {
            Greeting::Attach { ticket } => {
                // the ticket identifies the flow
                let mut tickets = locked(&self.tickets);
                if tickets.get(&ticket).is_some_and(|ticket| ticket.only == ip)
                    && let Some(found) = tickets.remove(&ticket)
                {
                    let _ = found.stream.send(stream);
                }
                return Ok(None);
            }
            Greeting::Hello { version: VERSION, keyed, handshake } => (keyed, handshake),
            Greeting::Hello { version, .. } => {
                let why =
                    format!("this server speaks version {VERSION} and not {version}: both ends need the same Paceline");
                return no(&Answer::Refused { why });
            }
        };
        let key = self.options.key.as_ref();
        match (key, keyed) {
            (Some(_), false) => return no(&Answer::Key),
            (None, true) => return no(&Answer::Keyless),
            _ => {}
        }
        if let Some(wait) = key.and_then(|_| locked(&self.tries).wait(ip, self.clock.now())) {
            let why = format!("too many wrong keys from your address: try again in {:.0} s", wait.as_secs_f64().ceil());
            return no(&Answer::Refused { why });
        }
        match answer(key, &handshake)? {
            Answered::WrongKey if key.is_none() => no(&Answer::Refused { why: "that is no handshake".to_owned() }),
            Answered::WrongKey => {
                self.wrong_key(ip);
                no(&Answer::Refused { why: "the key is not the server's".to_owned() })
            }
            Answered::Hello(handshake, noise) => {
                control::write(&mut Within::of(&stream, PATIENCE), &Answer::Hello { handshake })?;
                Ok(Some(Channel::new(stream, noise)))
            }
        }
    }

    /// Checks a client's first message in its channel: only a holder of the key can encrypt it.
    pub(super) fn check_first_message<T>(&self, channel: &Channel, message: &io::Result<T>, ip: IpAddr) {
        match message {
            _ if self.options.key.is_none() => {}
            _ if channel.has_decrypted() => locked(&self.tries).right(ip),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => self.wrong_key(ip),
            _ => {}
        }
    }

    fn wrong_key(&self, ip: IpAddr) {
        let now = self.clock.now();
        locked(&self.tries).wrong(ip, now);
        let said = locked(&self.wrong_key_limiter).on_event(now);
        if let Some(more) = said {
            (self.say)(&format!("{ip}: a wrong key{more}"));
        }
    }
}
