/*
 * Plays one source of a playlist item in a video element: DASH or HLS with shaka-player, which is loaded when it is
 * needed, and everything else as the browser does. The channel embed imports this file; it is no public interface.
 */

/** The key systems, by their names under `drm` of a source. */
const KEY_SYSTEMS = { widevine: 'com.widevine.alpha', playready: 'com.microsoft.playready' };
const CLEAR_KEY = 'org.w3.clearkey';
const FAIR_PLAY = 'com.apple.fps';
/** Licenses and manifests are small, so a server that takes longer will not answer. */
const TIMEOUT_MS = 10_000;

let shakaLoading;
let attempts = 0;

/** Loads shaka-player once for a page, and leaves a player of the same name that the page has in its place. */
function loadShaka() {
  shakaLoading ??= (async () => {
    const theirs = Object.getOwnPropertyDescriptor(window, 'shaka');
    // A browser remembers that a module failed to load, by its address.
    const again = attempts > 0 ? `?again=${attempts}` : '';
    attempts += 1;
    await import(new URL(`shaka-player.js${again}`, import.meta.url).href);
    const { shaka } = window;
    if (theirs) Object.defineProperty(window, 'shaka', theirs);
    else delete window.shaka;
    shaka.polyfill.installAll();
    return shaka;
  })();
  shakaLoading.catch(() => {
    shakaLoading = undefined;
  });
  return shakaLoading;
}

/** A failure that a page can show: the name of a text, and its detail. */
class Failure extends Error {
  constructor(reason, detail = '') {
    super(reason);
    this.reason = reason;
    this.detail = detail;
  }
}

export const isDash = ({ file, type }) => /dash\+xml/i.test(type || '') || /\.mpd(?:[?#]|$)/.test(file);
export const isHls = ({ file, type }) => /mpegurl/i.test(type || '') || /\.m3u8(?:[?#]|$)/.test(file);

const canPlayHls = () => document.createElement('video').canPlayType('application/vnd.apple.mpegurl') !== '';

/**
 * The source to play. DASH comes first, as it has all key systems but one; HLS where it is asked for, where FairPlay is
 * the key system, and where the browser takes nothing else.
 * @param format `hls` or `dash` takes a source of this format alone.
 */
export function chooseSource(sources, format) {
  const of = (format === 'hls' && isHls) || (format === 'dash' && isDash);
  if (of) return sources.find(of);
  const hasMediaSource = 'MediaSource' in window || 'ManagedMediaSource' in window;
  const apple = !hasMediaSource || 'WebKitMediaKeys' in window;
  const order = apple && canPlayHls() ? [isHls, isDash] : [isDash, isHls];
  return sources.find(order[0]) ?? sources.find(order[1]) ?? sources[0];
}

function asUuid(hex) {
  return hex.toLowerCase().replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function hexOf(base64url) {
  const bytes = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'));
  return [...bytes].map((byte) => byte.charCodeAt(0).toString(16).padStart(2, '0')).join('');
}

function base64urlOf(bytes) {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

function get(url, options = {}) {
  return fetch(url, { credentials: 'omit', signal: AbortSignal.timeout(TIMEOUT_MS), ...options });
}

/**
 * The keys that shaka-player requests from no license server: for HLS that names FairPlay, and media without a box for
 * ClearKey. Only the part of the stream that needs a missing key fails. `add` fetches the keys of a later part before
 * the browser gets its initialization segment.
 */
async function fetchKeys(url, keyIds) {
  const clearKeys = {};
  const missing = [];
  const ask = async (kid) => {
    let response;
    try {
      response = await get(url, { method: 'POST', body: JSON.stringify({ kids: [kid], type: 'temporary' }) });
    } catch {
      throw new Failure('licenseServer');
    }
    if (response.status === 404) {
      missing.push(asUuid(hexOf(kid)));
      return undefined;
    }
    const license = response.ok ? await response.json().catch(() => undefined) : undefined;
    if (!license || !Array.isArray(license.keys)) throw new Failure('licenseServer');
    for (const key of license.keys) clearKeys[hexOf(key.kid)] = hexOf(key.k);
    return license;
  };
  await Promise.all(keyIds.map(ask));
  if (Object.keys(clearKeys).length === 0 && missing.length > 0)
    throw new Failure('noLicense', missing.join(', '));
  const known = new Map(keyIds.map((kid) => [kid, undefined]));
  const addKey = async (mediaKeys, kid) => {
    const license = await ask(kid);
    if (!license) return;
    const session = mediaKeys.createSession();
    const bytesOf = (value) => new TextEncoder().encode(JSON.stringify(value));
    await session.generateRequest('keyids', bytesOf({ kids: [kid] }));
    await session.update(bytesOf(license));
  };
  const add = async (mediaKeys, initialization) => {
    const kids = keyIdsIn(initialization);
    for (const kid of kids) if (!known.has(kid)) known.set(kid, addKey(mediaKeys, kid));
    await Promise.all(kids.map((kid) => known.get(kid)));
  };
  return { clearKeys, missing, add };
}

/** The default key ids (base64url) of the tracks of an initialization segment. */
function keyIdsIn(bytes) {
  const found = [];
  for (let at = 4; at + 28 <= bytes.length; at += 1) {
    // The default key id is 12 bytes behind the name of `tenc` (ISO/IEC 23001-7).
    if (String.fromCharCode(...bytes.subarray(at, at + 4)) === 'tenc')
      found.push(base64urlOf(bytes.subarray(at + 12, at + 28)));
  }
  return found;
}

/** The key ids (base64url) in the initialization segments of an HLS stream, whose playlists name none. */
async function findKeyIds(playlistUrl) {
  const read = async (url) => {
    const response = await get(url);
    if (!response.ok) throw new Failure('unreachable');
    return response;
  };
  const master = await read(playlistUrl);
  const text = await master.text();
  const base = master.url || playlistUrl;
  const uris = [...text.matchAll(/^(?!#)\S.*$|^#EXT-X-MEDIA:.*URI="([^"]+)"/gm)].map(
    ([line, uri]) => uri ?? line,
  );
  const lists = /^#EXT-X-STREAM-INF:/m.test(text) ? uris.map((uri) => new URL(uri, base).href) : [base];
  const found = new Set();
  for (const list of new Set(lists)) {
    const answer = await read(list);
    const maps = (await answer.text()).matchAll(/^#EXT-X-MAP:.*URI="([^"]+)"/gm);
    for (const uri of new Set([...maps].map(([, each]) => each))) {
      const bytes = new Uint8Array(await (await read(new URL(uri, answer.url || list).href)).arrayBuffer());
      for (const kid of keyIdsIn(bytes)) found.add(kid);
    }
  }
  return [...found];
}

async function drmOf({ file, drm }, isHlsSource) {
  if (!drm) return { drm: {} };
  if (!window.isSecureContext) throw new Failure('insecure');
  const { clearkey, fairplay } = drm;
  const url = (address) => new URL(address, document.baseURI).href;
  if (clearkey) {
    const named = clearkey.keyIds ?? [];
    const keyIds = isHlsSource && named.length === 0 ? await findKeyIds(file) : named;
    if (keyIds.length === 0) return { drm: { servers: { [CLEAR_KEY]: url(clearkey.url) } } };
    const { clearKeys, ...more } = await fetchKeys(url(clearkey.url), keyIds);
    return { drm: { clearKeys }, ...more };
  }
  const servers = {};
  for (const [name, system] of Object.entries(KEY_SYSTEMS)) {
    if (drm[name]?.url) servers[system] = url(drm[name].url);
  }
  if (!fairplay?.processSpcUrl) return { drm: { servers } };
  servers[FAIR_PLAY] = url(fairplay.processSpcUrl);
  const certificate = fairplay.certificateUrl && url(fairplay.certificateUrl);
  const advanced = certificate && { [FAIR_PLAY]: { serverCertificateUri: certificate } };
  return { drm: { servers, ...(advanced && { advanced }) } };
}

function failureOf(error, { isEncrypted, asked, codes }) {
  if (error instanceof Failure) return error;
  const { code, category, data = [] } = error;
  if (code === codes.LICENSE_REQUEST_FAILED)
    return data[0]?.data?.[1] === 404
      ? new Failure('noLicense', [...asked].join(', '))
      : new Failure('licenseServer');
  if (code === codes.LICENSE_RESPONSE_REJECTED) return new Failure('licenseServer');
  if (code === codes.RESTRICTIONS_CANNOT_BE_MET && data[0]?.missingKeys?.length > 0)
    return new Failure('noLicense', data[0].missingKeys.map(asUuid).join(', '));
  if (code === codes.CONTENT_UNSUPPORTED_BY_BROWSER || code === codes.NO_VARIANTS)
    return new Failure('unsupported');
  if (category === 6) return new Failure('noKeySystem');
  if (category === 1) return new Failure('unreachable');
  if (category === 3) return new Failure(isEncrypted ? 'wrongKey' : 'undecodable', String(data[2] ?? ''));
  if (category === 4) return new Failure('malformed', String(code ?? ''));
  return new Failure('unplayable', String(code ?? ''));
}

/**
 * Whether a picture, or a sound where there is no picture, has come out of the decoder: time passes without. Firefox
 * counts no picture before it plays.
 */
function hasDecoded(video, hasShown) {
  if (video.readyState < 2) return false;
  return hasShown || video.videoWidth === 0 || video.getVideoPlaybackQuality().totalVideoFrames > 0;
}

/** As shaka-player calls them. */
const TEXT_KINDS = { captions: 'caption', subtitles: 'subtitle' };
const STALLED_MS = 4000;
/** The first picture takes longer on a busy machine. */
const START_MS = 8000;

/**
 * Plays a source until stop().
 * @param options `video`; `source` and `tracks` of the item; `report(state, detail)`, which gets `playing` at the first
 *   picture and after each stall, `stalled`, `ended`, and `failed` once with `reason` and `detail`.
 */
export function playSource({ video, source, tracks = [], report }) {
  const listeners = new AbortController();
  const { signal } = listeners;
  const asked = new Set();
  let player;
  let codes = {};
  let isEncrypted = false;
  let isPlaying = false;
  let hasShown = false;
  let hasStalled = false;
  let isBuffering = false;
  let stuck = 0;
  let keys = {};
  let isOver = false;
  let waiting;

  const on = (name, react) => video.addEventListener(name, react, { signal });

  function fail(error) {
    if (isOver) return;
    const { reason, detail } = failureOf(error, { isEncrypted, asked, codes });
    stop();
    report('failed', { reason, detail });
  }

  function stop() {
    if (isOver) return;
    isOver = true;
    clearTimeout(waiting);
    listeners.abort();
    if (player) player.destroy().catch(() => undefined);
    else {
      video.removeAttribute('src');
      video.load();
    }
  }

  function seePicture() {
    // The browser reports the time once more where it stops.
    const hasMore = !isBuffering && (video.readyState > 2 || video.ended);
    if (hasMore) {
      clearTimeout(waiting);
      waiting = undefined;
      stuck = 0;
    }
    if (isPlaying || (hasStalled && !hasMore) || !hasDecoded(video, hasShown)) return;
    isPlaying = true;
    const known = [...(player?.drmInfo()?.keyIds ?? [])].map(asUuid);
    const keyIds = [...new Set(known.length > 0 ? known : asked)];
    report('playing', {
      isLive: player?.isLive() ?? false,
      isEncrypted,
      keySystem: (isEncrypted && player?.keySystem()) || '',
      keyIds,
    });
  }

  /** Whether the next data is loaded but not played: its key is missing, or the decoder hangs. */
  function isStuck() {
    const { buffered, currentTime } = video;
    for (let at = 0; at < buffered.length; at += 1) {
      if (buffered.start(at) <= currentTime + 0.5 && buffered.end(at) > currentTime + 2) return true;
    }
    return false;
  }

  function seeStall() {
    waiting ??= setTimeout(
      () => {
        waiting = undefined;
        if (isOver || video.ended || video.paused) return;
        stuck = isStuck() ? stuck + 1 : 0;
        if (stuck > 1) {
          const { missing = [] } = keys;
          if (missing.length > 0) fail(new Failure('noLicense', missing.join(', ')));
          else fail(new Failure(hasStalled ? 'stalled' : 'undecodable'));
          return;
        }
        if (isPlaying) {
          isPlaying = false;
          hasStalled = true;
          report('stalled', {});
        }
        seeStall();
      },
      isPlaying || hasStalled ? STALLED_MS : START_MS,
    );
  }

  on('encrypted', () => {
    isEncrypted = true;
  });
  for (const name of ['loadeddata', 'playing', 'timeupdate']) on(name, seePicture);
  video.requestVideoFrameCallback?.(() => {
    hasShown = true;
    if (!isOver) seePicture();
  });
  on('waiting', seeStall);
  on('ended', () => report('ended', {}));

  function native() {
    on('error', () => fail(new Failure('undecodable', video.error?.message)));
    for (const { file, label, language, kind } of tracks) {
      const track = document.createElement('track');
      Object.assign(track, { kind, src: file, label: label ?? '', srclang: language ?? '' });
      video.append(track);
      signal.addEventListener('abort', () => track.remove());
    }
    if (tracks.length > 0) video.crossOrigin = 'anonymous';
    video.src = source.file;
  }

  async function adaptive() {
    const hls = !isDash(source);
    const shaka = await loadShaka().catch(() => {
      throw new Failure('noPlayer');
    });
    codes = shaka.util.Error.Code;
    if (isOver) return;
    if (!shaka.Player.isBrowserSupported()) {
      if (!hls || !canPlayHls()) throw new Failure('unsupported');
      native();
      return;
    }
    keys = await drmOf(source, hls);
    if (isOver) return;
    const made = new shaka.Player();
    player = made;
    made.configure({ drm: keys.drm, streaming: { stallEnabled: true, rebufferingGoal: 1 } });
    made.addEventListener('error', ({ detail }) => {
      if (detail.severity === shaka.util.Error.Severity.CRITICAL) fail(detail);
    });
    // shaka-player sets the playback rate to 0 then, which the element does not report as waiting.
    made.addEventListener('buffering', ({ buffering }) => {
      isBuffering = buffering;
      if (buffering) seeStall();
      else seePicture();
    });
    made.getNetworkingEngine().registerRequestFilter((type, { body }) => {
      if (type !== shaka.net.NetworkingEngine.RequestType.LICENSE || !body) return;
      try {
        const { kids } = JSON.parse(new TextDecoder().decode(body));
        for (const kid of kids) asked.add(asUuid(hexOf(kid)));
      } catch {
        // The request of another key system.
      }
    });
    made.getNetworkingEngine().registerResponseFilter(async (_type, { data }, context) => {
      const { INIT_SEGMENT } = shaka.net.NetworkingEngine.AdvancedRequestType;
      if (context?.type === INIT_SEGMENT) await keys.add?.(video.mediaKeys, new Uint8Array(data));
    });
    await made.attach(video);
    if (isOver) return;
    await made.load(source.file);
    if (isOver) return;
    if (!isPlaying) seeStall();
    if (made.isLive()) return;
    for (const { file, label, language, kind } of tracks) {
      // The picture plays without a missing text.
      await made
        .addTextTrackAsync(
          file,
          language || 'und',
          TEXT_KINDS[kind] ?? 'caption',
          'text/vtt',
          undefined,
          label,
        )
        .catch(() => undefined);
    }
  }

  if (isDash(source) || isHls(source)) adaptive().catch(fail);
  else native();
  return { stop };
}
