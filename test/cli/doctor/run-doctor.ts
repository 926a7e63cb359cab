import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { Writable, type WritableOptions } from 'node:stream';
import { Command, CommanderError } from 'commander';
import fs from 'fs-extra';
import type { ListedKeyFile } from '../../../src/api/answers';
import { CliError, EXIT, type ExitCode } from '../../../src/cli/cli-error';
import { createHttpCall, createSidecarApi } from '../../../src/cli/client';
import { DOCTOR } from '../../../src/cli/command-table';
import { type CliContext, readConnection } from '../../../src/cli/context';
import { type DoctorOptions, doctor } from '../../../src/cli/doctor/doctor';
import type { Check, Section } from '../../../src/cli/doctor/finding';
import type { Identity, Machine } from '../../../src/cli/doctor/rights';
import type { AskedSidecar } from '../../../src/cli/doctor/sidecar';
import { addCommand } from '../../../src/cli/run';
import { createOutput } from '../../../src/terminal/output';
import { API_KEY } from '../../support/start-sidecar';

/** A finding and a section as the JSON document has them. */
export interface Finding extends Omit<Check, 'severity' | 'description'> {
  readonly severity: 'ok' | 'warning' | 'fault';
  readonly message: string;
}

interface ShownSection extends Omit<Section, 'checks'> {
  readonly findings: readonly Finding[];
}

const ME: Identity = { name: 'me', uid: process.getuid?.() ?? 0, gids: [process.getgid?.() ?? 0] };

export interface DoctorRun {
  readonly code: ExitCode;
  readonly stdout: string;
  /** The program's reports of faults that it can't follow. */
  readonly problems: readonly string[];
}

export interface DoctorSetting {
  readonly sidecar?: () => AskedSidecar;
  /** The accounts of the machine; the one who runs the test, as `me`, when left out. */
  readonly accounts?: readonly Identity[];
  /** Files below `/proc`. */
  readonly proc?: Readonly<Record<string, string>>;
}

/** Runs `packager-drm doctor` on an installation, with a machine of its own, whose processes lie in `machine`. */
export async function runDoctor(
  packager: string,
  args: readonly string[] = [],
  setting: DoctorSetting = {},
): Promise<DoctorRun> {
  const chunks: string[] = [];
  const write: WritableOptions['write'] = (chunk, _encoding, done) => {
    chunks.push(String(chunk));
    done();
  };
  const stdout = new Writable({ write });
  const { accounts = [ME], sidecar = () => sidecarOn(join(packager, 'keys')), proc = {} } = setting;
  const machine: Machine = {
    proc: join(packager, 'machine/proc'),
    findUser: async (user) => accounts.find(({ name, uid }) => name === user || String(uid) === user),
  };
  for (const [path, text] of Object.entries(proc)) await fs.outputFile(join(machine.proc, path), text);
  let code: ExitCode = EXIT.done;
  const context: CliContext = {
    argv: args,
    version: '1.2.3',
    env: {},
    cwd: packager,
    stdin: process.stdin,
    stdout,
    stderr: new Writable({ write: (_chunk, _encoding, done) => done() }),
    interrupted: new AbortController().signal,
    now: () => new Date(0),
    random: randomBytes,
    wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    out: createOutput(stdout, stdout, {}, args.includes('--json')),
    sidecar: () => sidecar() as ReturnType<CliContext['sidecar']>,
    configFile: () => undefined,
    authority: () => undefined,
    apiKeyFile: undefined,
    endWith: (given) => {
      code = given;
    },
  };
  const program = new Command('packager-drm')
    .option('--json')
    .exitOverride()
    .configureOutput({ writeErr: () => undefined });
  addCommand(program, DOCTOR).action((options: DoctorOptions) => doctor(context, options, machine));
  const named = args.includes('--packager') ? args : ['--packager', packager, ...args];
  try {
    await program.parseAsync(['doctor', ...named], { from: 'user' });
    return { code, stdout: chunks.join(''), problems: [] };
  } catch (thrown) {
    const end = { code: EXIT.usage, stdout: chunks.join('') };
    if (thrown instanceof CommanderError) return { ...end, problems: [thrown.message] };
    if (!(thrown instanceof CliError)) throw thrown;
    const problems = thrown.problems.map(({ description }) => description);
    return { ...end, code: thrown.exitCode, problems };
  }
}

/** Runs as a user who gets only what is open to all; root would get everything. */
export async function asOtherUser<Result>(run: () => Promise<Result>): Promise<Result> {
  const { seteuid } = process;
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) seteuid?.(65534);
  try {
    return await run();
  } finally {
    if (isRoot) seteuid?.(0);
  }
}

/** The sections of the doctor's JSON answer. */
export async function sectionsOf(
  packager: string,
  args: readonly string[] = [],
  setting: DoctorSetting = {},
): Promise<ShownSection[]> {
  const { stdout } = await runDoctor(packager, [...args, '--json'], setting);
  const { sections }: { sections: ShownSection[] } = JSON.parse(stdout);
  return sections;
}

/** All findings that are not well, each with the subject of its section (paths from the installation on). */
export async function troubles(
  packager: string,
  args: readonly string[] = [],
  setting: DoctorSetting = {},
): Promise<(Finding & { about: string })[]> {
  const sections = await sectionsOf(packager, args, setting);
  const text = JSON.stringify(
    sections.flatMap(({ subject, findings }) =>
      findings.filter(({ severity }) => severity !== 'ok').map((finding) => ({ about: subject, ...finding })),
    ),
  );
  return JSON.parse(text.replaceAll(`${packager}/`, ''));
}

/** A finding as one line, with what it says to do; XML without its line breaks. */
export function lineOf({ severity, code, message, todo, xml }: Finding): string {
  const what = todo === undefined ? '' : ` → ${todo}`;
  return `${severity} ${code}: ${message}${what}${xml ? `: ${xml.replaceAll(/\n\s*/g, '')}` : ''}`;
}

const NO_FLEET = new CliError(EXIT.failed, {
  code: 'fleet_not_configured',
  description: 'It is in no fleet.',
});

/** A sidecar on a folder: ready, saying which it is, and listing the files as they are. */
export function sidecarOn(folder: string, changes: Partial<AskedSidecar> = {}): AskedSidecar {
  return {
    address: 'http://127.0.0.1:9000',
    ready: async () => {
      const { dev, ino } = await fs.stat(folder, { bigint: true });
      return { status: 'ready', folder: { device: String(dev), inode: String(ino) } };
    },
    list: async () => ({ keyfiles: await listed(folder), cursor: null }),
    fleet: { status: () => Promise.reject(NO_FLEET) },
    ...changes,
  };
}

/** A sidecar as the program calls it. */
export function clientOf(url: string): () => AskedSidecar {
  const connection = readConnection({ url, key: API_KEY }, {}, '/');
  return () => createSidecarApi(connection, new AbortController().signal, createHttpCall(connection));
}

export async function listed(folder: string): Promise<ListedKeyFile[]> {
  const paths = await fs.readdir(folder, { recursive: true });
  const keyFiles = paths
    .map(String)
    .filter((path) => path.endsWith('.key') && !path.startsWith('.'))
    .sort();
  return Promise.all(
    keyFiles.map(async (path) => {
      const { size, mtime } = await fs.stat(join(folder, path));
      const keys = { parts: ['cenc'], key_id: null, content_id: null, faults: [] };
      return { streamid: path.slice(0, -4), modified: mtime.toISOString(), size, ...keys };
    }),
  );
}
