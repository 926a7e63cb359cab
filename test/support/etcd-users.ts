import { fieldOf, GATEWAY_ERRORS, type Message } from './etcd-messages';
import { type Range, StoreError } from './etcd-store';
import type { Effects } from './etcd-transactions';

/** Whom the gateway lets in, once users are set. */
export interface GatewayUser {
  readonly name: string;
  readonly password: string;
  /** Beginnings of keys that the user may read, or read and write; without it everything. */
  readonly rights?: readonly { readonly prefix: string; readonly may: 'read' | 'write' }[];
}

/** etcd's users with their rights, and the tokens that they have. */
export class Access {
  private users: readonly GatewayUser[] | undefined;
  private readonly tokens = new Map<string, GatewayUser>();
  private signIns = 0;

  require(users: readonly GatewayUser[] | undefined): void {
    this.users = users;
    this.tokens.clear();
  }

  forgetTokens(): void {
    this.tokens.clear();
  }

  signIn(message: Message): string {
    if (!this.users) throw GATEWAY_ERRORS.authOff();
    const user = this.users.find(({ name }) => name === fieldOf(message, 'name'));
    if (user?.password !== fieldOf(message, 'password') || !user) throw GATEWAY_ERRORS.badPassword();
    this.signIns += 1;
    const token = `StandInTokenOfAUser.${this.signIns}`;
    this.tokens.set(token, user);
    return token;
  }

  /** Only a wrong token is refused: leases need no user. */
  checkToken(token: string | undefined): void {
    if (token !== undefined) this.userOf(token);
  }

  authorise(token: string | undefined, { reads, writes }: Effects): void {
    if (!this.users) return;
    const user = this.userOf(token);
    if (!user) throw GATEWAY_ERRORS.noUser();
    const isAllowed =
      reads.every((range) => hasRight(user, range, ['read', 'write'])) &&
      writes.every((range) => hasRight(user, range, ['write']));
    if (!isAllowed) throw GATEWAY_ERRORS.denied();
  }

  /** Defragmenting is for those with all rights. */
  authoriseRoot(token: string | undefined): void {
    if (this.users && this.userOf(token)?.rights !== undefined)
      throw new StoreError('auth: permission denied', 2);
    if (this.users && token === undefined) throw new StoreError('auth: user name is empty', 2);
  }

  private userOf(token: string | undefined): GatewayUser | undefined {
    if (!this.users || token === undefined) return undefined;
    const user = this.tokens.get(token);
    if (!user) throw GATEWAY_ERRORS.badToken();
    return user;
  }
}

function hasRight({ rights }: GatewayUser, { key, end }: Range, may: readonly string[]): boolean {
  if (!rights) return true;
  return rights.some(
    (right) =>
      may.includes(right.may) &&
      key.startsWith(right.prefix) &&
      (end === '' || (end !== '\0' && end <= afterAll(right.prefix))),
  );
}

/** The first text after all that begin with a prefix. */
function afterAll(prefix: string): string {
  const last = prefix.charCodeAt(prefix.length - 1);
  return `${prefix.slice(0, -1)}${String.fromCharCode(last + 1)}`;
}
