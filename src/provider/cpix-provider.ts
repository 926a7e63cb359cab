import { type CpixContent, documentProblems } from '../api/read-cpix-request';
import type { ProviderContent } from '../api/read-key-file-request';
import { formatUuid } from '../drm/bytes';
import { systemName } from '../drm/check/boxes';
import { type ChosenKeys, type CpixChoice, chooseKeys } from '../drm/cpix/choose';
import { CPIX_SYSTEM_IDS, type CpixDocument, type CpixSystemName } from '../drm/cpix/document';
import type { CpixRecipient } from '../drm/cpix/encryption';
import { looksLikeCpixBytes, readCpix } from '../drm/cpix/read';
import type { SpekeQuestion, SpekeScheme, SpekeVersion } from '../drm/cpix/speke';
import type { Problem } from '../drm/finding';
import { HttpError } from '../http/errors';
import { type KeyProvider, type ProvidedKeys, type ProviderCall, refusedBy } from './key-provider';
import type { ReadProviderHeaders } from './provider-headers';
import {
  fillAddress,
  type ProviderProtocol,
  secretsIn,
  UPSTREAMS,
  type Upstream,
  type UpstreamDocument,
} from './upstream';

interface CpixProviderOptions {
  readonly protocol: Exclude<ProviderProtocol, 'json'>;
  readonly address: string;
  readonly upstream: Upstream;
  readonly providerHeaders: ReadProviderHeaders | undefined;
  /** undefined: SPEKE's answers come plain. */
  readonly cpixRecipient: FindRecipient;
  readonly playReadyUrl?: string | undefined;
}

interface Question {
  /** undefined: a GET. */
  readonly speke: Pick<SpekeQuestion, 'version' | 'scheme' | 'tracks'> | undefined;
  /** Systems that the answer must have; undefined: those that it has. */
  readonly systems: readonly CpixSystemName[] | undefined;
  /** Set where the answer must come encrypted. */
  readonly recipient: CpixRecipient | undefined;
}

/** Providers refuse documents that mix schemes. */
const OF_SCHEME: Readonly<Record<SpekeScheme, readonly CpixSystemName[]>> = {
  cenc: ['widevine', 'playready'],
  cbcs: ['fairplay'],
};
const ALL_SYSTEMS = Object.values(OF_SCHEME).flat();

const SPEKE_VERSION = 'x-speke-version';
const VERSIONS: Readonly<Partial<Record<ProviderProtocol, SpekeVersion>>> = {
  speke1: 1,
  speke2: 2,
  speke21: 2.1,
};
/** A provider that does not answer as this version may speak these. */
const OLDER = {
  2: 'SPEKE v1, set PACKAGERDRMAPI_KEYPROVIDERPROTOCOL to speke1',
  2.1: 'SPEKE 2.0, set PACKAGERDRMAPI_KEYPROVIDERPROTOCOL to speke2',
} as const;

/** By a GET of a CPIX document, or by SPEKE's POSTs, one for each scheme. */
export function createCpixProvider(options: CpixProviderOptions): KeyProvider {
  const { protocol, address, upstream, providerHeaders, cpixRecipient } = options;
  // Loading it would make each start longer.
  const loadSpeke = () => import('../drm/cpix/speke');

  const questionsFor = ({
    choice: { systems = ALL_SYSTEMS, track } = {},
    ...content
  }: ProviderContent): Question[] => {
    const version = VERSIONS[protocol];
    if (version === undefined) return [{ speke: undefined, systems: undefined, recipient: undefined }];
    const recipient = cpixRecipient();
    const tracks = content.tracks ?? (track === undefined ? undefined : [track]);
    return (['cenc', 'cbcs'] as const).flatMap((scheme): Question[] => {
      const wanted = OF_SCHEME[scheme].filter((name) => systems.includes(name));
      return wanted.length === 0 ? [] : [{ speke: { version, scheme, tracks }, systems: wanted, recipient }];
    });
  };

  const fetchDocument = async (question: Question, content: ProviderContent, call: ProviderCall) => {
    const { clientApiKey, contentId, choice } = content;
    const { speke, systems = [], recipient } = question;
    // The key id in a GET's address is the request's, or that of SPEKE under `cenc`.
    const keyId = address.includes('{kid}')
      ? (choice?.keyId ?? (await loadSpeke()).spekeKeyId(contentId, 'cenc'))
      : undefined;
    const certificate = recipient?.certificate;
    const own = providerHeaders?.() ?? {};
    const answer = await upstream.document({
      ...call,
      url: fillAddress(address, { ...content, kid: keyId && formatUuid(keyId) }),
      clientApiKey,
      headers: {
        accept: 'application/xml, application/cpix+xml',
        ...(speke && { 'content-type': 'application/xml' }),
        ...own,
        ...(speke && speke.version !== 1 && { [SPEKE_VERSION]: speke.version.toFixed(1) }),
      },
      secrets: [...Object.values(own), ...secretsIn(address)],
      body: speke && (await loadSpeke()).writeSpekeRequest({ ...speke, contentId, systems, certificate }),
    });
    const { status } = answer;
    if (status === 401 || status === 403) throw refusedBy(upstream, status, clientApiKey, providerHeaders);
    if (status !== 200) {
      const why = `answered ${status}${hintOf(status, question, choice?.systems)}`;
      throw status === 404 ? upstream.unknown(why) : upstream.failed(why);
    }
    return { question, document: await readAnswer(answer, question, contentId, keyId) };
  };
  type AnsweredDocument = Awaited<ReturnType<typeof fetchDocument>>;

  const readAnswer = async (
    { headers, body }: UpstreamDocument,
    { speke }: Question,
    contentId: string,
    keyId: Buffer | undefined,
  ): Promise<CpixDocument> => {
    const read = readCpix(body, { isSpeke: speke !== undefined });
    if (!read.ok && !looksLikeCpixBytes(body)) {
      const { variable } = UPSTREAMS.key_provider;
      throw upstream.failed(`returned something that is not a CPIX document; check ${variable}`);
    }
    const later = speke?.version === 1 ? undefined : speke?.version;
    if (later && headers[SPEKE_VERSION] !== later.toFixed(1))
      throw upstream.failed(
        `answered without the header X-Speke-Version: ${later.toFixed(1)}; if it speaks ${OLDER[later]}`,
      );
    if (!read.ok) throw unusable([read.problem]);
    const document = read.value;
    // A provider that is asked by a key id need not know the content id.
    if (keyId) {
      if (document.keys.some((key) => key.keyId.equals(keyId))) return document;
      throw upstream.failed('returned no key with the requested key id');
    }
    const named = [document.contentId, speke?.version === 1 ? document.id : undefined];
    if (named.some((id) => id !== undefined && id !== contentId))
      throw upstream.failed('returned the keys of a different content id than requested');
    const version = later && (await loadSpeke()).CPIX_VERSIONS[later];
    if (version && document.version !== undefined && document.version !== version)
      throw upstream.failed(
        `returned a CPIX document of another version than ${version}, which SPEKE v${later} requires`,
      );
    return document;
  };

  const unusable = (faults: readonly Problem[]): HttpError =>
    upstream.failed(
      `returned a CPIX document that ${faults.map(({ description }) => description).join('; ')}`,
    );

  const choose = async (
    { document, question }: AnsweredDocument,
    { contentId, choice }: ProviderContent,
  ): Promise<ChosenKeys> => {
    const { speke, systems = [] } = question;
    const chosenIn = (of: CpixDocument, by: CpixChoice): ChosenKeys => {
      const chosen = chooseKeys(of, by);
      if (chosen.ok) return chosen.value;
      throw unusable(chosen.faults);
    };
    if (!speke) return chosenIn(document, choice ?? {});
    const present = document.systems.map(({ systemId }) => systemId);
    const absent = systems.filter((name) => !present.includes(CPIX_SYSTEM_IDS[name]));
    if (absent.length > 0)
      throw upstream.failed(`returned no ${listed(absent)}${leaveOut(absent, choice?.systems)}`);
    const { spekeKeyId } = await loadSpeke();
    const keyId = spekeKeyId(contentId, speke.scheme, choice?.track);
    const isOwn = (item: { readonly keyId: Buffer }) => item.keyId.equals(keyId);
    const keys = document.keys.filter(isOwn);
    if (keys.length > 0) {
      // Parts about the keys of other tracks take time and add nothing.
      const [drmSystems, rules] = [document.systems.filter(isOwn), document.rules.filter(isOwn)];
      return chosenIn({ ...document, keys, systems: drmSystems, rules }, { systems });
    }
    // A provider may return other key ids, which are then used: by its usage rules, or of a single key.
    if (speke.tracks && speke.tracks.length > 1) return chosenIn(document, { track: choice?.track, systems });
    return chosenIn(document, { keyId: document.keys.length > 1 ? keyId : undefined, systems });
  };

  const makeKeyFile = async (
    answered: AnsweredDocument,
    content: ProviderContent,
    playReadyUrl: string | undefined,
  ): Promise<ProvidedKeys> => {
    const { question, document } = answered;
    const { contentId } = content;
    const chosen = await choose(answered, content);
    const { recipient = cpixRecipient() } = question;
    const isPlain = document.keys.some(({ value }) => value?.kind === 'plain');
    if (question.recipient && isPlain)
      throw upstream.failed('returned plain content keys, although the request asks for encrypted ones');
    const made = await readDocument(
      { document, chosen, playReadyUrl, contentId },
      recipient,
      options.playReadyUrl,
    );
    if (!made.ok) throw unusable(made.faults);
    return made;
  };

  /** The tracks of a batch's entry are requested once. */
  const together = new WeakMap<readonly string[], readonly Promise<AnsweredDocument>[]>();

  const callsFor = (content: ProviderContent, call: ProviderCall): readonly Promise<AnsweredDocument>[] => {
    const { tracks } = content;
    const known = tracks && together.get(tracks);
    if (known) return known;
    // A track that fails must not end the calls for the others.
    const own = tracks ? { requestId: call.requestId } : call;
    const calls = questionsFor(content).map((question) => fetchDocument(question, content, own));
    if (tracks) together.set(tracks, calls);
    return calls;
  };

  return {
    ask(content, call) {
      const calls = callsFor(content, call);
      return {
        calls,
        async open() {
          const answers = await Promise.all(calls);
          // PlayReady comes first: for a later document, its address would be reported as unused.
          const addresses = [content.playReadyUrl];
          const made = await Promise.all(
            answers.map((answered, index) => makeKeyFile(answered, content, addresses[index])),
          );
          return merged(made);
        },
      };
    },
  };
}

/** The parts of a key file have no lines in common. */
function merged(parts: readonly ProvidedKeys[]): ProvidedKeys {
  return {
    keyFile: Object.assign({}, ...parts.map(({ keyFile }) => keyFile)),
    isChecksumComputed: parts.some(({ isChecksumComputed }) => isChecksumComputed),
    corrected: parts.flatMap(({ corrected = [] }) => corrected),
  };
}

/** Other statuses, as 429, refuse the time or the way of a request, not its content. */
const OF_THE_QUESTION: readonly number[] = [400, 404, 409, 422];

function hintOf(
  status: number,
  { speke, systems = [] }: Question,
  wanted: readonly CpixSystemName[] | undefined,
): string {
  if (!speke || !OF_THE_QUESTION.includes(status)) return '';
  return ` to the request for ${listed(systems)} (${speke.scheme})${leaveOut(systems, wanted)}`;
}

function leaveOut(
  systems: readonly CpixSystemName[],
  wanted: readonly CpixSystemName[] = ALL_SYSTEMS,
): string {
  const others = wanted.filter((name) => !systems.includes(name));
  return others.length === 0
    ? ''
    : `; if it does not have ${systems.length === 1 ? 'it' : 'them'}, ask with "systems": ${JSON.stringify(others)}`;
}

function listed(systems: readonly CpixSystemName[]): string {
  return systems.map((name) => systemName(CPIX_SYSTEM_IDS[name])).join(' and ');
}

export type FindRecipient = () => CpixRecipient | undefined;

/** @throws HttpError 400. */
export async function openDocument(
  content: CpixContent,
  findRecipient: FindRecipient,
): Promise<ProvidedKeys> {
  const opened = await readDocument(content, findRecipient());
  if (opened.ok) return opened;
  throw new HttpError(400, documentProblems(opened.faults));
}

/** Faults continue the name of the document. */
async function readDocument(
  { document, chosen, playReadyUrl, contentId }: CpixContent,
  recipient: CpixRecipient | undefined,
  fallbackPlayReadyUrl?: string,
): Promise<
  ({ readonly ok: true } & ProvidedKeys) | { readonly ok: false; readonly faults: readonly Problem[] }
> {
  // Loaded with the first document: nothing else needs them, and the start would wait for them.
  const [{ openCpix }, { cpixKeyFile }] = await Promise.all([
    import('../drm/cpix/encryption'),
    import('../drm/cpix/key-file'),
  ]);
  const keyIds = [chosen.cenc, chosen.fairplay].flatMap((key) => key?.keyId ?? []);
  const opened = await openCpix(document, recipient, keyIds);
  if (!opened.ok) return { ok: false, faults: [opened.problem] };
  const made = cpixKeyFile(opened.value, chosen, { playReadyUrl, fallbackPlayReadyUrl, contentId });
  if (!made.ok) return made;
  const { keyFile, isChecksumComputed } = made;
  return { ok: true, keyFile, corrected: [...chosen.findings, ...made.findings], isChecksumComputed };
}
