import * as http from 'node:http';
import * as https from 'node:https';
import { systemCode } from '../../../http/errors';

/** What a connection shows and trusts: PEM. Without `ca`, the public authorities. */
export interface Credentials {
  readonly ca?: string | Buffer | undefined;
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
}

export interface Ask {
  readonly path: string;
  /** What is POSTed as JSON; undefined: a GET. */
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** How long nothing may come: neither the head of the answer, nor the next part of its body. */
  readonly silenceMs: number;
}

export interface Answer {
  readonly status: number;
  /** Of the server's clock. */
  readonly date: string | undefined;
  readonly body: Buffer;
}

/** There was no answer, or none to its end. */
export class NoAnswer extends Error {
  constructor(
    /** The system's, TLS's or the HTTP parser's; `ETIMEDOUT`: nothing came for too long; `TOO_LARGE`. */
    readonly code: string,
    /** Whether the server may have the request. */
    readonly isSent: boolean,
    /** Whether it was sent on a kept connection, which the server may have closed just then. */
    readonly isStale: boolean,
  ) {
    super(code);
    this.name = 'NoAnswer';
  }
}

/** Asks one server over HTTP. */
export interface Exchange {
  /** @throws NoAnswer */
  ask(ask: Ask): Promise<Answer>;
  /**
   * The same over a connection of its own, for an answer that does not end: it is handed over with its head. Whoever
   * takes it destroys it. @throws NoAnswer
   */
  open(ask: Ask): Promise<http.IncomingMessage>;
  close(): void;
}

/** Longer there is no way to a server: the handshake of TLS is part of it. */
const CONNECT_MS = 1000;
const MAX_CONNECTIONS = 64;
/** Above the largest page that is asked for. */
const MAX_ANSWER = 256 * 1024 * 1024;

/** `credentials` are asked for at each new connection. */
export function createExchange(url: string, credentials: () => Credentials): Exchange {
  const isSecure = url.startsWith('https:');
  const newAgent = (options: http.AgentOptions) =>
    isSecure ? new SecureAgent(options, credentials) : new http.Agent(options);
  const kept = newAgent({ keepAlive: true, maxSockets: MAX_CONNECTIONS });
  const single = newAgent({ keepAlive: false });

  const begin = (
    { path, body, headers, silenceMs }: Ask,
    agent: http.Agent,
    take: (response: http.IncomingMessage, call: Call) => void,
    reject: (failed: NoAnswer) => void,
  ) => {
    const call = new Call(silenceMs, reject);
    try {
      call.send(
        (isSecure ? https : http).request(`${url}${path}`, {
          method: body === undefined ? 'GET' : 'POST',
          agent,
          headers: {
            ...headers,
            ...(body !== undefined && {
              'content-type': 'application/json',
              'content-length': Buffer.byteLength(body),
            }),
          },
        }),
        body,
        take,
      );
    } catch (thrown) {
      call.fail(systemCode(thrown) ?? 'ERROR');
    }
  };

  return {
    ask: (ask) =>
      new Promise((resolve, reject) => {
        begin(ask, kept, (response, call) => collect(response, call, resolve), reject);
      }),
    open: (ask) =>
      new Promise((resolve, reject) => {
        const take = (response: http.IncomingMessage, call: Call) => {
          call.end();
          // Until somebody reads it: an error without a listener would end the process.
          response.on('error', () => undefined);
          resolve(response);
        };
        begin(ask, single, take, reject);
      }),
    close() {
      kept.destroy();
      single.destroy();
    },
  };
}

function collect(response: http.IncomingMessage, call: Call, resolve: (answer: Answer) => void): void {
  const chunks: Buffer[] = [];
  let length = 0;
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAX_ANSWER) call.fail('TOO_LARGE');
    else call.heard();
  });
  response.on('end', () => {
    call.end();
    const [first] = chunks;
    const body = chunks.length === 1 && first ? first : Buffer.concat(chunks, length);
    resolve({ status: response.statusCode ?? 0, date: response.headers.date, body });
  });
  response.on('error', (thrown) => call.fail(systemCode(thrown) ?? 'ECONNRESET'));
  response.on('close', () => call.fail('ECONNRESET'));
}

/** A request until its answer is there, or is given up. */
class Call {
  #request: http.ClientRequest | undefined;
  #isSent = false;
  #hasHead = false;
  #isOver = false;
  #connect: NodeJS.Timeout | undefined;
  readonly #silence: NodeJS.Timeout;

  constructor(
    silenceMs: number,
    readonly reject: (failed: NoAnswer) => void,
  ) {
    this.#silence = setTimeout(() => this.fail('ETIMEDOUT'), silenceMs);
  }

  send(
    request: http.ClientRequest,
    body: string | undefined,
    take: (response: http.IncomingMessage, call: Call) => void,
  ): void {
    this.#request = request;
    const sent = () => {
      clearTimeout(this.#connect);
      this.#isSent = true;
    };
    request.on('socket', (socket) => {
      if (this.#isOver) return;
      if (request.reusedSocket) {
        sent();
        return;
      }
      this.#connect = setTimeout(() => this.fail('ETIMEDOUT'), CONNECT_MS);
      socket.once('encrypted' in socket ? 'secureConnect' : 'connect', sent);
    });
    request.on('response', (response) => {
      this.#hasHead = true;
      this.heard();
      take(response, this);
    });
    request.on('upgrade', (_response, socket) => {
      socket.destroy();
      this.fail('ERROR');
    });
    request.on('error', (thrown) => this.fail(systemCode(thrown) ?? 'ERROR'));
    request.on('close', () => this.#hasHead || this.fail('ECONNRESET'));
    request.end(body);
  }

  heard(): void {
    this.#silence.refresh();
  }

  end(): void {
    this.#isOver = true;
    clearTimeout(this.#silence);
    clearTimeout(this.#connect);
  }

  fail(code: string): void {
    if (this.#isOver) return;
    this.end();
    const isReset = code === 'ECONNRESET' || code === 'EPIPE';
    const isStale = isReset && !this.#hasHead && this.#request?.reusedSocket === true;
    this.reject(new NoAnswer(code, this.#isSent, isStale));
    this.#request?.destroy();
  }
}

/** Takes certificates and key anew for each connection, so that a change of them needs no restart. */
class SecureAgent extends https.Agent {
  constructor(
    options: https.AgentOptions,
    readonly credentials: () => Credentials,
  ) {
    // A resumed session would pass over the certificates of now.
    super({ ...options, maxCachedSessions: 0 });
  }

  override createConnection(
    ...[options, callback]: Parameters<https.Agent['createConnection']>
  ): ReturnType<https.Agent['createConnection']> {
    return super.createConnection({ ...options, ...this.credentials() }, callback);
  }
}
