// Credentials, and requests that are signed with one.
//
//   password ─ prelogin ─▶ salt ─▶ root ┐
//   passkey's PRF output ─────────────▶ ├─▶ proof over origin, purpose, challenge and body
//   recovery code ────────────────────▶ ┘
//
// Stretching a password takes a second, so a worker of its own does it (kdf.worker.ts) where there can be one. Easy to get wrong: one salt
// for two servers. The origin and the login are in what is signed and stretched. And signing one text while sending another: `body` is
// written once, and its bytes are what is signed and sent.

import { type Bytes, same, utf8 } from "../format/bytes";
import {
  type AccountKey,
  type AccountId,
  CredentialId,
  Login,
  PROFILE,
  RecoveryCode,
  Refused,
  Root,
  Statement,
  Wrap,
  passwordSalt,
} from "../format/index";
import {
  type AnswerOf,
  type CredentialKind,
  type NewCredential,
  type ObjectShape,
  type Path,
  type Purpose,
  ROUTES,
  type RequestOf,
  Signed,
  type SignerName,
  readBody,
  writeBody,
} from "../protocol/index";
import { whenReading, whenWriting } from "./error";
import { type SessionKeys, type Transport, fromTransport } from "./transport";

/** What a person knows or holds. */
export type Credential =
  | { kind: "password"; login: Login; password: string; totp: string | null }
  | { kind: "recovery"; code: RecoveryCode }
  /** A passkey: its id, and its PRF of `prfInput`. */
  | { kind: "passkey"; id: CredentialId; output: Bytes };

/** A password; a login that is not one, or a code that is not six digits, is `login-refused`. */
export function passwordOf(login: string, password: string, totp: string | null = null): Credential {
  if (totp !== null && !/^[0-9]{6}$/.test(totp)) throw new Refused("login-refused");
  return { kind: "password", login: Login.parse(login), password, totp };
}

/** Argon2id of a password, 32 bytes: in another worker if there is one. */
export type Stretch = (password: Bytes, salt: Bytes) => Promise<Bytes>;

let stretch: Stretch | null = null;

/** From now on passwords are stretched by this. */
export function stretchWith(other: Stretch | null): void {
  stretch = other;
}

/** The root of a password. A profile other than 1 is `kdf-refused` before anything is derived. */
export async function rootOfPassword(login: Login, password: string, serverSalt: Bytes, profile: number): Promise<Root> {
  const salt = await passwordSalt(login, serverSalt);
  if (stretch === null || profile !== PROFILE) return Root.fromPassword(password, salt, profile);
  // The root is a key of these 32 bytes, as that of a passkey is.
  return Root.fromPrf(await stretch(utf8(password.normalize("NFKC")), salt));
}

/** A credential that can sign and open. */
export class Signing {
  constructor(
    readonly root: Root,
    readonly kind: CredentialKind,
    readonly signer: SignerName,
    readonly totp: string | null,
  ) {}

  wrap(): Wrap {
    if (this.kind === "passkey" && "credential" in this.signer) return Wrap.passkey(this.signer.credential);
    return this.kind === "recovery" ? Wrap.RECOVERY : Wrap.PASSWORD;
  }

  /** What its wrap is remembered by. */
  name(): string {
    return "login" in this.signer ? "password" : this.signer.credential;
  }

  /** As the server keeps it, with the account key sealed for this revision of the account. */
  async newCredential(ak: AccountKey, account: AccountId, rev: number): Promise<NewCredential> {
    return {
      kind: this.kind,
      id: "login" in this.signer ? undefined : this.signer.credential,
      publicKey: await this.root.publicKey(),
      wrap: await ak.wrap(await this.root.kek(), account, this.wrap(), rev),
    };
  }

  /** Writes a request and signs it. */
  async sign<P extends Path>(path: P, request: RequestOf<P>, link: Link, challenge: Bytes): Promise<Signed> {
    const { who, request: shape } = ROUTES[path];
    const body = written<RequestOf<P>>(shape as unknown as ObjectShape<RequestOf<P>>, request);
    const signer = "login" in this.signer ? this.signer.login : this.signer.credential;
    const statement = new Statement({
      origin: link.transport.origin,
      purpose: purposeOf(who),
      signer,
      challenge,
      body: utf8(body),
    });
    const proof = await this.root.prove(statement);
    return { body, challenge, signer: this.signer, proof, totp: this.totp ?? undefined };
  }
}

function purposeOf(who: string): Purpose {
  if (who === "anybody" || who === "session") throw new TypeError("this request is not signed");
  // Every other `who` of the routes is a purpose.
  return who as Purpose;
}

/** What a credential was made ready with: the server's half of the salt and the profile, of a password. */
interface Made {
  salt: { server: Bytes; profile: number } | null;
  signing: Signing;
}

/** Stretching takes a second: one credential is made ready once per salt, and forgotten with the object. */
const made = new WeakMap<Credential, Made>();

/** What a credential was last made ready with; null if it was not. */
export function lastMade(credential: Credential): Made | null {
  return made.get(credential) ?? null;
}

/** What signs, with the server's half of a password's salt. */
export async function signingOf(credential: Credential, serverSalt: Bytes | null, profile: number): Promise<Signing> {
  const before = made.get(credential);
  const isSame = before?.salt == null || (serverSalt !== null && same(before.salt.server, serverSalt) && before.salt.profile === profile);
  if (before !== undefined && isSame) return before.signing;
  const signing = await makeSigning(credential, serverSalt, profile);
  const salt = credential.kind === "password" && serverSalt !== null ? { server: serverSalt, profile } : null;
  made.set(credential, { salt, signing });
  return signing;
}

async function makeSigning(credential: Credential, serverSalt: Bytes | null, profile: number): Promise<Signing> {
  switch (credential.kind) {
    case "password": {
      const { login, password, totp } = credential;
      if (serverSalt === null) throw new Refused("login-refused");
      return new Signing(await rootOfPassword(login, password, serverSalt, profile), "password", { login }, totp);
    }
    case "recovery": {
      const signer = { credential: await credential.code.credentialId() };
      return new Signing(await Root.fromRecovery(credential.code), "recovery", signer, null);
    }
    case "passkey":
      // A copy: making a root wipes what it is made from, and the same passkey may sign twice.
      return new Signing(await Root.fromPrf(credential.output.slice()), "passkey", { credential: credential.id }, null);
  }
}

/** The way to the server for requests without a socket. */
export class Link {
  constructor(
    readonly transport: Transport,
    public session: SessionKeys | null,
  ) {}

  /** Sends a request as it is: the answer's bytes, and the id of a session that it opened. */
  async raw(path: Path, body: string): Promise<[body: Bytes, session: Bytes | null]> {
    try {
      const posted = await this.transport.post(path, this.session, body);
      return [posted.body, posted.session];
    } catch (error) {
      throw fromTransport(error);
    }
  }

  /** Sends a request that needs no proof. */
  async post<P extends Path>(path: P, request: RequestOf<P>): Promise<AnswerOf<P>> {
    const [answer] = await this.postForSession(path, request);
    return answer;
  }

  /** The same, with the id of a session that the answer opened. */
  async postForSession<P extends Path>(path: P, request: RequestOf<P>): Promise<[answer: AnswerOf<P>, session: Bytes | null]> {
    const shape = ROUTES[path].request as unknown as ObjectShape<RequestOf<P>>;
    const [json, session] = await this.raw(path, written<RequestOf<P>>(shape, request));
    return [answerOf(path, json), session];
  }

  /** Sends a request that was signed. */
  async sendSigned<P extends Path>(path: P, signed: Signed): Promise<[answer: AnswerOf<P>, session: Bytes | null]> {
    const [json, session] = await this.raw(path, written(Signed, signed));
    return [answerOf(path, json), session];
  }

  /** Asks for a challenge and signs the request with it. */
  async signed<P extends Path>(path: P, request: RequestOf<P>, by: Signing): Promise<Signed> {
    const { challenge } = await this.post("/account/challenge", { purpose: purposeOf(ROUTES[path].who) });
    return by.sign(path, request, this, challenge);
  }

  async prove<P extends Path>(path: P, request: RequestOf<P>, by: Signing): Promise<AnswerOf<P>> {
    const [answer] = await this.sendSigned(path, await this.signed(path, request, by));
    return answer;
  }

  /**
   * Makes a credential ready to sign. For a password the server is asked for its half of the salt; a profile other than the one there is is
   * `kdf-refused` before anything is derived.
   */
  async ready(credential: Credential): Promise<Signing> {
    if (credential.kind !== "password") return signingOf(credential, null, PROFILE);
    const answer = await this.post("/account/prelogin", { login: credential.login });
    return signingOf(credential, answer.serverSalt, answer.profile);
  }
}

/** Reads what the server sent. */
export function answerOf<P extends Path>(path: P, json: Bytes): AnswerOf<P> {
  try {
    return readBody(ROUTES[path].answer as unknown as ObjectShape<AnswerOf<P>>, json);
  } catch (error) {
    throw whenReading(error);
  }
}

/** Writes what this device sends: what is over a limit is `too-large`. */
function written<T extends object>(shape: ObjectShape<T>, value: T): string {
  try {
    return writeBody(shape, value);
  } catch (error) {
    throw whenWriting(error);
  }
}
