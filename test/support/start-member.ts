import { randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import fs from 'fs-extra';
import type { StreamId } from '../../src/api/stream-id';
import type { Engine } from '../../src/sidecar/fleet/engine/engine';
import { openFleet } from '../../src/sidecar/fleet/open-fleet';
import type { AuditEntry } from '../../src/sidecar/observe/audit';
import { createDurableWriter } from '../../src/sidecar/storage/durable-file';
import { createKeyFileStore, type KeyFileStore } from '../../src/sidecar/storage/key-file-store';
import { afterTest, temporaryFolder } from './after-test';
import { FakeCluster } from './fake-engine';
import { recordedLog } from './recorded-log';
import { until } from './until';

export const FLEET_SECRET = 'the-fleet-secret-of-the-tests-0123456789';
export const OTHER_SECRET = 'another-secret-of-the-tests-0123456789-abc';

/** The engine's key of a stream's entry. */
export const KEY = (stream: string) => `packagerdrmapi/keys/${stream}`;

const CONTEXT = { by: { key: 'tests', address: '127.0.0.1', requestId: 'request-1' }, awaited: false };

interface MemberOptions {
  readonly name?: string;
  readonly streams?: readonly string[];
  readonly secrets?: readonly string[];
  /** Those that its file has when it starts. */
  readonly laterSecrets?: readonly string[];
  /** Where its key files are; by default a new folder that is removed after the test. */
  readonly folder?: string;
  readonly clock?: () => Date;
  /** How often it looks at its folder. */
  readonly folderMs?: number;
  /** How often it renews its lease. */
  readonly heartbeatMs?: number;
  /** Wraps the folder for the fleet. */
  readonly around?: (local: KeyFileStore) => KeyFileStore;
}

export type Member = Awaited<ReturnType<typeof startMember>>;

/** Starts what takes part in a fleet, with a folder of its own; it is stopped after the test. */
export async function startMember(engine: Engine, options: MemberOptions = {}) {
  const { name = 'origin-1', streams, clock = () => new Date(), around = (local) => local } = options;
  const folder = options.folder ?? (await temporaryFolder());
  let secrets = options.secrets ?? [FLEET_SECRET];
  let listener = () => {};
  const { log, lines } = recordedLog();
  const audit: AuditEntry[] = [];
  let conflicts = 0;
  let stopped: Promise<void> | undefined;
  const local = around(createKeyFileStore(folder, 0o640, createDurableWriter(randomUUID)));
  const fleet = openFleet(
    {
      config: { name, streams, prefix: 'packagerdrmapi/' },
      engine,
      secrets: () => secrets,
      onSecrets: (heard) => {
        listener = heard;
      },
      folder,
      folderMs: options.folderMs ?? 5000,
      ...{ pace: options.heartbeatMs && { heartbeatMs: options.heartbeatMs } },
      log,
      newId: randomUUID,
      random: randomBytes,
      now: () => performance.now(),
      clock,
      version: '1.2.3',
      audit: (entry) => audit.push(entry),
      observer: {
        entry: () => undefined,
        applied: () => undefined,
        conflict: () => {
          conflicts += 1;
        },
      },
    },
    local,
  );
  const reseal = (...next: readonly string[]) => {
    secrets = next;
    listener();
  };
  if (options.laterSecrets) reseal(...options.laterSecrets);
  fleet.start();
  const path = (stream: string) => join(folder, `${stream}.key`);
  const member = {
    fleet,
    folder,
    audit,
    lines,
    conflicts: () => conflicts,
    /** Writes a key file for the fleet. */
    put: (stream: string, text: string) =>
      fleet.store.write(stream as StreamId, Buffer.from(text), {}, CONTEXT),
    remove: (stream: string) => fleet.store.remove(stream as StreamId, undefined, CONTEXT),
    /** The text of a key file in the folder; undefined: there is none. */
    file: (stream: string) =>
      fs.existsSync(path(stream)) ? fs.readFileSync(path(stream), 'utf8') : undefined,
    /** Changes the folder as a person would. */
    byHand(stream: string, text: string | undefined) {
      if (text === undefined) fs.removeSync(path(stream));
      else fs.outputFileSync(path(stream), text);
    },
    /** Gives it other secrets, as a changed file would. */
    reseal,
    /** Resolves when it has all of the fleet. */
    level: () => until(() => fleet.figures().state === 'level'),
    stop: (): Promise<void> => (stopped ??= fleet.close()),
  };
  afterTest(() => member.stop());
  return member;
}

/** The same; resolves when it has all of the fleet. */
export async function startLevel(engine: Engine, options?: MemberOptions): Promise<Member> {
  const member = await startMember(engine, options);
  await member.level();
  return member;
}

/** A fleet of one packager on an engine of its own. */
export async function startOne() {
  const cluster = new FakeCluster();
  const engine = cluster.connect();
  const one = await startLevel(engine, { name: 'one' });
  return { cluster, engine, one };
}

/** A fleet of two packagers; the engine is the second one's. */
export async function startTwo(options?: MemberOptions) {
  const { cluster, one } = await startOne();
  const engine = cluster.connect();
  const two = await startLevel(engine, { name: 'two', ...options });
  return { cluster, engine, one, two };
}

/** Resolves when members have taken what came so far: a change of another stream comes after it. */
export async function settled(from: Member, ...members: readonly Member[]): Promise<void> {
  const stamp = `stamp: ${Math.random()}\n`;
  await from.put('settled', stamp);
  await until(() => members.every((member) => member.file('settled') === stamp));
}

export const stateOf = (member: Member) => member.fleet.figures().state;
export const lacksOf = (member: Member) => member.fleet.figures().lacks;
