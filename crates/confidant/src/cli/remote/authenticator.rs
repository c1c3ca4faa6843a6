//! `/authenticator`: whether the password needs a code as well, of an app that shows a new one every half minute.

use std::io::{self, IsTerminal as _};

use anyhow::{Context as _, anyhow};
use confidant_chat_protocol::Totp;
use confidant_client::{Credential, Error, TotpChange};
use data_encoding::BASE32_NOPAD;
use secrecy::ExposeSecret as _;
use serde_json::json;
use zeroize::Zeroizing;

use super::Remote;
use crate::cli::hidden;
use crate::output::note;

impl Remote<'_> {
    pub(super) async fn authenticator(&mut self, word: &str) -> anyhow::Result<()> {
        match word {
            "on" => self.authenticator_on().await,
            "off" => {
                let (by, device) = (self.credential()?, &mut self.device);
                with_totp(by, async |by| device.change_credentials(by, &[], Some(TotpChange::Off)).await)
                    .await?;
                note("the password needs no code from now on");
                Ok(())
            }
            _ => Err(anyhow!("say which; hint: /authenticator on, or /authenticator off")),
        }
    }

    async fn authenticator_on(&mut self) -> anyhow::Result<()> {
        let by = self.credential()?;
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *secret).context("the system provides no random numbers")?;
        let text = Zeroizing::new(BASE32_NOPAD.encode(&*secret));
        let login = self.login.as_deref().unwrap_or_default().replace('@', "%40");
        let address = Zeroizing::new(format!(
            "otpauth://totp/Confidant:{login}?secret={}&issuer=Confidant&algorithm=SHA1&digits=6&period=30",
            *text
        ));
        self.show(json!({ "authenticator": address.as_str() }), &address, None)?;
        note(
            "add this to your authenticator app (or only the secret in it), then type the code that it shows now",
        );
        let code = hidden::ask("Code: ", "nothing else")?;
        let code = Totp::parse(code.expose_secret().trim()).ok_or_else(|| {
            anyhow!("a code has six digits; nothing was changed; hint: /authenticator on, again")
        })?;
        // The one code is no answer to the question for another: an account that has an authenticator already keeps it.
        let on = TotpChange::On { secret: *secret, code };
        let device = &mut self.device;
        with_totp(by, async |by| device.change_credentials(by, &[], Some(on.clone())).await).await?;
        note(
            "from now on the password needs a code of this app as well; the recovery code and passkeys need none",
        );
        Ok(())
    }
}

/// Does what a credential is asked for; a password that is refused is tried with a one-time code, where somebody can type one.
pub(super) async fn with_totp<T>(
    credential: Credential,
    mut attempt: impl AsyncFnMut(&Credential) -> Result<T, Error>,
) -> anyhow::Result<T> {
    match attempt(&credential).await {
        Err(Error::Denied { error, .. })
            if error.name() == "login-refused"
                && matches!(credential, Credential::Password { .. })
                && io::stdin().is_terminal() =>
        {
            note(
                "refused; if the account needs a code from an authenticator app, type it; otherwise press Ctrl-C",
            );
            let code = hidden::ask("Code: ", "nothing else")?;
            Ok(attempt(&credential.with_totp(code.expose_secret().trim())?).await?)
        }
        done => Ok(done?),
    }
}

/// A password for what cannot be tried twice, with a code if the person has one to type.
pub(super) fn with_any_totp(credential: Credential) -> anyhow::Result<Credential> {
    if !io::stdin().is_terminal() {
        return Ok(credential);
    }
    match hidden::ask_if_any("Code of the authenticator app, if you use one (else Enter): ")? {
        Some(code) => Ok(credential.with_totp(code.expose_secret().trim())?),
        None => Ok(credential),
    }
}
