// Passkeys in a real browser, with the authenticator that Chromium emulates: at an https address with a name, as behind an operator's proxy.
// Made, used to unlock and to log in, refused where it is another one or cannot make keys, and removed. And where passkeys cannot be: said.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, test } from "node:test";
import type { CDPSession, Page } from "playwright-core";
import { atEachSize, isAccountOf, lock } from "./steps";
import { BrowserWorld, type Tab } from "./world";

atEachSize((size, opposite) => {
  let world: BrowserWorld;
  let tab: Tab;
  let page: Page;
  let first: Authenticator;
  const PASSWORD = "correct horse battery staple";

  before(async () => {
    world = await BrowserWorld.start(true, { tlsName: "chats.test" });
  });
  after(async () => {
    await world?.stop();
  });

  /** The authenticator of a tab: one at a time, and its passkeys can be taken to another tab. */
  class Authenticator {
    private constructor(private readonly session: CDPSession, readonly id: string) {}

    static async plug(on: Tab, hasPrf = true): Promise<Authenticator> {
      const session = await on.context.newCDPSession(on.page);
      await session.send("WebAuthn.enable", { enableUI: false });
      const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
        options: { protocol: "ctap2", ctap2Version: "ctap2_1", transport: "internal", hasResidentKey: true, hasUserVerification: true, hasPrf, isUserVerified: true, automaticPresenceSimulation: true },
      });
      return new Authenticator(session, authenticatorId);
    }

    async unplug(): Promise<void> {
      await this.session.send("WebAuthn.removeVirtualAuthenticator", { authenticatorId: this.id });
      await this.session.detach();
    }

    /** The person says no. */
    async verifies(isUserVerified: boolean): Promise<void> {
      await this.session.send("WebAuthn.setUserVerified", { authenticatorId: this.id, isUserVerified });
    }

    async count(): Promise<number> {
      return (await this.session.send("WebAuthn.getCredentials", { authenticatorId: this.id })).credentials.length;
    }
  }

  async function prove(on: Page, button: string, totp?: string): Promise<void> {
    const dialog = on.getByRole("dialog");
    await dialog.getByLabel("Password", { exact: true }).fill(PASSWORD);
    if (totp !== undefined) {
      await dialog.getByRole("button", { name: "I have a code of an authenticator" }).click();
      await dialog.getByLabel("Code of your authenticator").fill(totp);
    }
    await dialog.getByRole("button", { name: button }).click();
  }

  test("a passkey is added to an account with a password", async () => {
    tab = await world.registered("keyed", PASSWORD, size.options);
    page = tab.page;
    first = await Authenticator.plug(tab);
    await page.goto(`${world.origin}/#/settings/security`);
    await page.getByRole("button", { name: "Add a passkey" }).click();
    await prove(page, "Continue");
    await page.getByText("The passkey is added.").waitFor();
    assert.equal(await first.count(), 1);
    await tab.shot(`passkey-added-${size.name}`);
  });

  test("it unlocks this browser, and does not where the person says no", async () => {
    await lock(page);
    await tab.shot(`passkey-locked-${size.name}`);
    await page.getByRole("button", { name: "Unlock with a passkey" }).click();
    await page.getByRole("heading", { name: "Second factor" }).waitFor();
    await lock(page);
    await first.verifies(false);
    await page.getByRole("button", { name: "Unlock with a passkey" }).click();
    await page.getByText("The passkey was not used.").waitFor();
    // An authenticator that was refused so often is locked for good: the password is there.
    await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await page.getByRole("button", { name: "Unlock", exact: true }).click();
    await page.getByRole("heading", { name: "Second factor" }).waitFor();
  });

  test("an account without a password: made, locked, unlocked, left and logged in to with a passkey; it opens no other account", async () => {
    const other = await world.tab(opposite.options);
    const stranger = await Authenticator.plug(other);
    await other.page.goto(world.origin);
    await other.page.getByRole("button", { name: "Create an account" }).click();
    await other.page.getByLabel("Login").fill("stranger");
    await other.page.getByRole("button", { name: "Use a passkey in place of a password" }).click();
    await other.page.getByLabel("I have kept the code").check();
    await other.page.getByRole("button", { name: "Continue" }).click();
    await other.page.getByText("What is on your mind?").waitFor();
    assert.equal(await stranger.count(), 1);
    await lock(other.page);
    await other.page.getByRole("button", { name: "Unlock with a passkey" }).click();
    await other.page.getByText("What is on your mind?").waitFor();
    // Logged out, it is the only way in; and not into another account.
    await other.page.goto(`${world.origin}/#/settings/data`);
    await other.page.getByRole("button", { name: "Log out", exact: true }).click();
    await other.page.locator(".card").getByRole("button", { name: "Log out", exact: true }).click();
    await other.page.getByRole("heading", { name: "Log in" }).waitFor();
    await other.page.getByLabel("Login").fill("keyed");
    await other.page.getByRole("button", { name: "Use a passkey" }).click();
    await other.page.getByText("This passkey belongs to another account.").waitFor();
    await other.shot(`passkey-of-another-${opposite.name}`);
    await other.page.getByLabel("Login").fill("stranger");
    await other.page.getByRole("button", { name: "Use a passkey" }).click();
    await isAccountOf(other.page, "stranger");
    // The only way in besides the recovery code is not removed.
    await other.page.goto(`${world.origin}/#/settings/security`);
    await other.page.getByRole("button", { name: /^Remove: / }).click();
    await other.page.getByText("this is the only way to log in").waitFor();
    assert.equal(await other.page.getByRole("dialog").locator("button[type=submit]").count(), 0);
    await other.shot(`passkey-last-${opposite.name}`);
    await other.close();
  });

  test("a wrong authenticator is refused with words", async () => {
    await lock(page);
    await first.unplug();
    // It has a passkey for this address, of nobody here.
    const wrong = await Authenticator.plug(tab);
    await page.evaluate(async () => {
      const bytes = (length: number) => crypto.getRandomValues(new Uint8Array(length));
      await navigator.credentials.create({
        publicKey: {
          rp: { id: location.hostname, name: "x" }, user: { id: bytes(16), name: "x", displayName: "x" }, challenge: bytes(32), pubKeyCredParams: [{ type: "public-key", alg: -7 }],
          authenticatorSelection: { residentKey: "required", userVerification: "required" }, extensions: { prf: {} },
        },
      });
    });
    await page.getByRole("button", { name: "Unlock with a passkey" }).click();
    await page.getByText("This passkey belongs to another account.").waitFor();
    await tab.shot(`passkey-wrong-${size.name}`);
    await wrong.unplug();
    await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await page.getByRole("button", { name: "Unlock", exact: true }).click();
    await page.getByRole("heading", { name: "Second factor" }).waitFor();
  });

  test("an authenticator that cannot make keys says so, and nothing was added", async () => {
    const without = await Authenticator.plug(tab, false);
    await page.getByRole("button", { name: "Add a passkey" }).click();
    await prove(page, "Continue");
    await page.getByText("This passkey cannot make keys.").waitFor();
    await tab.shot(`passkey-without-prf-${size.name}`);
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    await without.unplug();
  });

  /** The code of an authenticator app, now. */
  function totpOf(secret: string): string {
    const bits = [...secret.toLowerCase()].map((one) => "abcdefghijklmnopqrstuvwxyz234567".indexOf(one).toString(2).padStart(5, "0")).join("");
    const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => parseInt(byte, 2)));
    const at = Buffer.alloc(8);
    at.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
    const mac = createHmac("sha1", key).update(at).digest();
    const from = (mac.at(-1) ?? 0) & 15;
    return String((mac.readUInt32BE(from) & 0x7fff_ffff) % 1_000_000).padStart(6, "0");
  }

  test("a second factor is switched on, asked for with the password on another device, and switched off", async () => {
    await page.getByRole("button", { name: "Switch on" }).click();
    const secret = (await page.locator(".code-shown").textContent()) ?? "";
    await page.getByRole("img", { name: "QR code for the authenticator" }).waitFor();
    await page.getByLabel("Code of your authenticator").fill(totpOf(secret));
    await page.getByRole("button", { name: "Switch on" }).click();
    await prove(page, "Continue");
    await page.getByText("The second factor is on.").waitFor();
    const other = await world.tab(opposite.options);
    await other.page.goto(world.origin);
    await other.page.getByLabel("Login").fill("keyed");
    await other.page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await other.page.getByRole("button", { name: "Log in", exact: true }).click();
    await other.page.getByText("the code of the authenticator is missing").waitFor();
    await tab.shot(`second-factor-${size.name}`);
    await other.page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await other.page.getByRole("button", { name: "I have a code of an authenticator" }).click();
    // A code is good once: the next one.
    await other.page.waitForTimeout(30_500 - (Date.now() % 30_000));
    await other.page.getByLabel("Code of your authenticator").fill(totpOf(secret));
    await other.page.getByRole("button", { name: "Log in", exact: true }).click();
    await other.page.getByText("What is on your mind?").waitFor();
    other.forgive();
    await other.close();
    await page.waitForTimeout(30_500 - (Date.now() % 30_000));
    await page.getByRole("button", { name: "Switch off" }).click();
    await prove(page, "Continue", totpOf(secret));
    await page.getByText("The second factor is off.").waitFor();
  });

  test("a passkey is listed, named and removed; what stays is shown first", async () => {
    const list = page.getByRole("list", { name: "Passkeys" });
    await list.getByRole("listitem").first().waitFor();
    assert.equal(await list.getByRole("listitem").count(), 1);
    await page.getByRole("button", { name: /^Rename: / }).click();
    await page.getByLabel("Name of the passkey").fill("Blue stick");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await list.getByText("Blue stick").waitFor();
    await tab.shot(`passkeys-listed-${size.name}`);
    await page.getByRole("button", { name: "Remove: Blue stick" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("is removed, too").waitFor();
    assert.equal(await dialog.locator("button[type=submit]").count(), 0, "nothing stays yet");
    await dialog.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await dialog.getByText("stays", { exact: true }).waitFor();
    await tab.shot(`passkey-removing-${size.name}`);
    await dialog.locator("button[type=submit]").click();
    await page.getByLabel("I have kept the code").check();
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByRole("heading", { name: "Passkeys" }).waitFor();
    await page.getByRole("button", { name: "Add a passkey" }).waitFor();
    assert.equal(await page.getByText("Blue stick").count(), 0);
  });

  test("passkeys are removed by replacing the account key: the passkey opens nothing any more", async () => {
    const again = await Authenticator.plug(tab);
    await page.getByRole("button", { name: "Add a passkey" }).click();
    await prove(page, "Continue");
    await page.getByText("The passkey is added.").waitFor();
    await page.getByRole("button", { name: "Replace the account key" }).click();
    await prove(page, "Continue");
    await page.getByLabel("I have kept the code").check();
    await page.getByRole("button", { name: "Continue" }).click();
    await lock(page);
    await page.getByRole("button", { name: "Unlock with a passkey" }).click();
    await page.getByText("Login or password is wrong").waitFor();
    assert.equal(await again.count(), 1, "the authenticator still has it");
    // Neither does the server take it any more.
    await page.getByRole("button", { name: "Use another account" }).click();
    await page.getByRole("button", { name: "Remove it" }).click();
    await page.getByLabel("Login").fill("keyed");
    await page.getByRole("button", { name: "Use a passkey" }).click();
    await page.getByText("Login or password is wrong").waitFor();
    await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await page.getByRole("button", { name: "Log in", exact: true }).click();
    await isAccountOf(page, "keyed");
  });

  test("nothing went wrong in the console on the way", async () => {
    // A log-in that is refused is answered with 401, which the browser notes.
    tab.problems.splice(0, tab.problems.length, ...tab.problems.filter((one) => !one.includes("401")));
    await tab.close();
  });

  test("on localhost the page works without passkeys, and says so", async () => {
    const local = await BrowserWorld.start(true);
    try {
      const here = await local.registered("local", PASSWORD, size.options);
      await here.page.goto(`${local.origin}/#/settings/security`);
      await here.page.getByText("Passkeys need an https address with a name. They do not work here.").waitFor();
      assert.equal(await here.page.getByRole("button", { name: "Add a passkey" }).count(), 0);
      await here.close();
    } finally {
      await local.stop();
    }
  });
});
