/*
 * Channel embed: plays a live channel's events as they come, and shows a waiting message in between. It plays a single
 * media as well, live or on demand.
 *
 *   <div id="stage"></div>
 *   <script src="https://example.com/embed/channel.js"></script>
 *   <script>channelEmbed.setup({ channelId: 'abcd1234', element: '#stage' })</script>
 *
 * Options of setup():
 *   channelId  id of the channel to play
 *   mediaId    id of the media to play, instead of a channel
 *   item       what to play itself, instead of an id: an item of a playlist ({ title, image, sources, tracks })
 *   element    where to show it, an element or a selector; without it, right after the calling script
 *   format     'hls' or 'dash', to play no other
 *   player     options for the page's own player (window.jwplayer), which is used when there is one
 *   messages   texts to show instead of the English ones: the names are those of TEXTS below
 *   baseUrl    address of the delivery, when the script itself comes from elsewhere
 *
 * setup() answers { element, destroy }. The element gets the events "channelactive" (detail: channelId, eventId,
 * title) and "channelidle" (detail: channelId), and "playback" (detail: state, which is 'loading', 'playing', 'stalled',
 * 'ended', 'pictureless', 'unavailable' or 'failed'; format; of what plays isEncrypted, keySystem and keyIds; of what has
 * failed reason and detail). The embed ends with destroy(), or when it is taken from the page.
 */
(() => {
  'use strict';

  const TEXTS = {
    waiting: 'Waiting for the event to begin',
    waitingDetail: 'The player will start automatically.',
    starting: 'The event is about to begin',
    startingDetail: 'The player will start automatically.',
    ended: 'The event has ended',
    endedDetail: 'The next one will start automatically.',
    unknown: 'This channel does not exist',
    unknownDetail: 'Check the channel id.',
    trouble: 'The channel cannot be reached',
    troubleDetail: 'Trying again in a moment.',
    absent: 'There is no such video',
    absentDetail: 'It is not published, or its id is wrong.',
    untitled: 'Video',
    loadingDetail: 'The picture is on its way.',
    picturelessDetail: 'The stream has no picture yet. It will start automatically.',
    preparingDetail: 'The video is being prepared. It will start automatically.',
    // The server answers with the reason, if this page may know it.
    unavailableDetail: '{detail}',
    stalledDetail: 'The picture has stopped. It will continue automatically.',
    unplayableDetail: 'It cannot be played (player error {detail}).',
    sourcelessDetail: 'There is nothing in this format to play.',
    noPlayerDetail: 'The player could not be loaded. Trying again in a moment.',
    unreachableDetail: 'The stream cannot be reached. Trying again in a moment.',
    malformedDetail: 'The manifest or playlist of the stream cannot be read (fault {detail}).',
    unsupportedDetail: 'This browser cannot play the format of the stream.',
    undecodableDetail: 'This browser cannot decode the stream.',
    wrongKeyDetail: 'The stream is encrypted with another key than the license has, so it cannot be decoded.',
    noLicenseDetail: 'There is no license for the key id {detail}.',
    licenseServerDetail: 'The license server does not answer as it should. Trying again in a moment.',
    noKeySystemDetail:
      'The stream is encrypted, and no license server is named for a DRM system of this browser, or the system does not take the codec of the stream.',
    insecureDetail:
      'The stream is encrypted. Browsers decrypt only on pages at https or localhost addresses.',
    live: 'Live',
  };
  const COVER = 'position: absolute; inset: 0; width: 100%; height: 100%';

  let count = 0;

  function make(tag, style = '', text) {
    const element = document.createElement(tag);
    element.style.cssText = style;
    if (text) element.textContent = text;
    return element;
  }

  function buildStage(texts) {
    const stage = make(
      'div',
      `position: relative; box-sizing: border-box; width: 100%; aspect-ratio: 16 / 9; overflow: hidden; border-radius: 12px;
      color: #eaf0ee; font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; line-height: 1.4; text-align: center;
      background: radial-gradient(120% 120% at 20% 0%, #1f4744 0%, #15201f 55%, #0c1413 100%) #1f4744`,
    );
    const screen = make('div', COVER);
    const panel = make(
      'div',
      `${COVER}; box-sizing: border-box; padding: 16px; pointer-events: none;
      display: flex; flex-direction: column; align-items: center; justify-content: center; gap: 14px`,
    );
    const dot = make('div', 'width: 12px; height: 12px; border-radius: 50%; background: #6ed3c8');
    dot.setAttribute('aria-hidden', 'true');
    if (!matchMedia('(prefers-reduced-motion: reduce)').matches) {
      dot.animate(
        [{ boxShadow: '0 0 0 0 rgba(110,211,200,.6)' }, { boxShadow: '0 0 0 16px rgba(110,211,200,0)' }],
        { duration: 1800, iterations: Infinity, easing: 'ease-out' },
      );
    }
    const words = make('div');
    words.setAttribute('role', 'status');
    words.setAttribute('aria-live', 'polite');
    words.dir = 'auto';
    const headline = make(
      'div',
      'max-height: 2lh; overflow: hidden; font-size: clamp(16px, 2.6vw, 24px); font-weight: 600; overflow-wrap: anywhere',
    );
    const detail = make('div', 'font-size: clamp(13px, 1.7vw, 16px); color: #b3c2bf; margin-top: 4px');
    words.append(headline, detail);
    panel.append(dot, words);
    const badge = make(
      'div',
      `position: absolute; top: 12px; left: 12px; padding: 2px 10px; border-radius: 6px; pointer-events: none;
      font-size: 12px; font-weight: 700; letter-spacing: .06em; text-transform: uppercase; color: #fff; background: #c81e3a`,
      texts.live,
    );
    stage.append(screen, panel, badge);

    /** Shows a message, or the bare player: then the words are for screen readers alone. */
    function show(state, name, title, about = '') {
      stage.dataset.state = state;
      const now = state === 'active' ? `${texts.live}: ${title}` : title;
      const lines = name
        ? [title || texts[name] || texts.untitled, texts[`${name}Detail`].replace('{detail}', () => about)]
        : [now, ''];
      // Screen readers read out changes only.
      if (headline.textContent !== lines[0]) headline.textContent = lines[0];
      if (detail.textContent !== lines[1]) detail.textContent = lines[1];
      panel.style.opacity = name ? '1' : '0';
      // The last picture stays visible behind it.
      panel.style.background = name === 'stalled' ? 'rgba(12,20,19,.84)' : 'none';
      dot.style.display = state === 'waiting' ? '' : 'none';
      badge.style.display = state === 'active' ? '' : 'none';
    }
    return { stage, screen, badge, show };
  }

  function isWebAddress(address) {
    const base = document.baseURI;
    return URL.canParse(address, base) && /^https?:$/.test(new URL(address, base).protocol);
  }

  /** Whether an HLS playlist or an MPD lists nothing that could be seen. */
  function isEmpty(text) {
    if (/^#EXTM3U/.test(text)) return !/^#(EXTINF|EXT-X-STREAM-INF|EXT-X-PART):/m.test(text);
    return /<MPD\b/.test(text) && !/<Representation\b/.test(text);
  }

  /**
   * Puts a player into the screen, the page's own one or ours. stop() takes it away; look() is called every few seconds:
   * it waits for the picture of a stream that has none, and tries a failed stream again.
   * @param about `item`; `getItem`, which requests it again; `playlistUrl` for a player of the page, and its `options`;
   *   `isChannel`; `autoplay`; `format`; `getText`; `report(state, detail)`, which is called at each change.
   */
  function play(view, about) {
    const { playlistUrl, isChannel, autoplay, format, options, getItem, getText, report } = about;
    view.screen.replaceChildren();
    const holder = make('div', COVER);
    count += 1;
    holder.id = `channel-embed-${count}`;
    view.screen.append(holder);
    const title = String(about.item.title || '');
    let state = isChannel ? 'active' : 'media';
    view.show(state, '', title);
    if (playlistUrl && typeof window.jwplayer === 'function') {
      view.badge.style.display = 'none';
      const player = window.jwplayer(holder.id);
      player.setup({ width: '100%', height: '100%', ...options, playlist: playlistUrl });
      return { stop: () => player.remove(), look: async () => {} };
    }
    let item = about.item;
    let video, session;
    let stopped = false;
    let failures = 0;
    let looksToWait = 0;
    let isStale = false;

    function say(name, detail) {
      if (video) {
        video.style.opacity = name && name !== 'stalled' ? '0' : '1';
        video.inert = Boolean(name) && name !== 'stalled';
      }
      // A stream without a picture has no live badge.
      view.show(name === 'unavailable' ? name : state, name, title, detail);
    }

    function react(next, detail) {
      report(next, detail);
      if (next === 'playing') {
        failures = 0;
        if (detail.isLive) state = 'active';
        say('');
      } else if (next === 'stalled') {
        say('stalled');
      } else if (next === 'failed') {
        session = undefined;
        looksToWait = looksAfter(failures);
        failures += 1;
        say(detail.reason, detail.detail);
      }
    }

    function makeVideo() {
      const made = make('video', `${COVER}; object-fit: contain; opacity: 0`);
      Object.assign(made, { controls: true, autoplay, muted: true, playsInline: true, inert: true });
      made.setAttribute('aria-label', title);
      if (item.image && isWebAddress(item.image)) made.poster = item.image;
      if (video) video.replaceWith(made);
      else holder.append(made);
      video = made;
    }

    makeVideo();

    /**
     * The state of a source with nothing to play, and the message on it; undefined where there is something.
     * A manifest that can't be read from here is not empty: the player says why it can't.
     */
    async function absenceOf({ file }) {
      try {
        return isEmpty(await getText(file)) ? { next: 'pictureless' } : undefined;
      } catch ({ status, body }) {
        if (status !== 404) return undefined;
        const isRefused = body.includes('"code":"not_available"');
        return isRefused ? { next: 'unavailable', ...JSON.parse(body) } : { next: 'pictureless' };
      }
    }

    async function begin(player) {
      const sources = (item.sources || []).filter((each) => isWebAddress(each.file));
      let source = player.chooseSource(sources, format);
      if (!source) {
        react('failed', { reason: 'sourceless', detail: '' });
        return;
      }
      const formatOf = (each) => (player.isDash(each) ? 'dash' : player.isHls(each) ? 'hls' : 'file');
      const absence = formatOf(source) === 'file' ? undefined : await absenceOf(source);
      if (stopped) return;
      if (absence) {
        // Without a packaged stream, the uploaded file may be playable.
        const file = format === undefined && sources.findLast((each) => formatOf(each) === 'file');
        if (!file) {
          const { next, message } = absence;
          isStale = true;
          report(next, {});
          say(next === 'unavailable' || isChannel ? next : 'preparing', message);
          return;
        }
        source = file;
      }
      if (failures > 0) makeVideo();
      else {
        say('loading');
        report('loading', {});
      }
      const tracks = (item.tracks || []).filter(
        (each) => each.file && isWebAddress(each.file) && each.kind !== 'thumbnails',
      );
      const shown = formatOf(source);
      session = player.playSource({
        video,
        source,
        tracks,
        report: (next, detail) => react(next, { ...detail, format: shown }),
      });
      // Where autoplay is blocked, as on iPhones in Low Power Mode, nothing may be loaded before the viewer presses play.
      // A video without a source shows whether it is: the other one is left as it is, and nothing is loaded twice.
      const begun = session;
      const showControls = ({ name }) => name === 'NotAllowedError' && session === begun && say('');
      const sourceless = Object.assign(make('video'), { autoplay: true, muted: true, playsInline: true });
      sourceless.play().catch(showControls);
    }

    return {
      stop() {
        stopped = true;
        if (session) session.stop();
        holder.remove();
      },
      async look() {
        if (session || stopped) return;
        looksToWait -= 1;
        if (looksToWait > 0) return;
        // The keys may have changed, or arrived.
        if (failures > 0 || isStale) item = await getItem();
        isStale = false;
        const player = await loadPlayer().catch(() => undefined);
        if (stopped) return;
        if (player) await begin(player);
        else react('failed', { reason: 'noPlayer', detail: '' });
      },
    };
  }

  const POLL_MS = 5000;
  /** The looks until the next try, after so many failures in a row before this one: at most a minute. */
  const looksAfter = (failures) => Math.min(2 ** failures, 12);
  const TIMEOUT_MS = 10000;

  const script = document.currentScript;
  const home = script?.src ? new URL('..', script.src).href : document.baseURI;
  const running = new WeakMap();

  let attempts = 0;

  /** A browser remembers that a module failed to load, by its address. */
  async function loadPlayer() {
    const again = attempts > 0 ? `?again=${attempts}` : '';
    try {
      return await import(new URL(`embed/player.js${again}`, home).href);
    } catch (error) {
      attempts += 1;
      throw error;
    }
  }

  function hostFor(element) {
    if (element instanceof Element) return element;
    if (element === undefined) {
      const host = make('div');
      const caller = document.currentScript;
      if (caller && !document.head.contains(caller)) caller.after(host);
      else (document.body || document.documentElement).append(host);
      return host;
    }
    const found = typeof element === 'string' ? document.querySelector(element) : null;
    if (!found) throw new TypeError(`channelEmbed.setup: there is no element ${String(element)}`);
    return found;
  }

  function setup(options) {
    const { channelId, mediaId, item: ownItem, element, format, player, messages, baseUrl } = options || {};
    const isId = (id) => typeof id === 'string' && id !== '';
    if (mediaId !== undefined && !isId(mediaId)) {
      throw new TypeError('channelEmbed.setup: mediaId must be the id of a media');
    }
    if (mediaId === undefined && ownItem === undefined && !isId(channelId)) {
      throw new TypeError('channelEmbed.setup: channelId must be the id of a channel');
    }
    if ([channelId, mediaId, ownItem].filter((each) => each !== undefined).length > 1) {
      throw new TypeError('channelEmbed.setup: give one of channelId, mediaId and item');
    }
    const base = new URL(baseUrl || home, document.baseURI);
    const at = (path, id) => new URL(`${path}/${encodeURIComponent(id)}`, base).href;
    const channelUrl = isId(channelId) ? `${at('live/channels', channelId)}.json` : undefined;
    const host = hostFor(element);
    if (running.has(host)) running.get(host).destroy();
    const view = buildStage({ ...TEXTS, ...messages });
    let eventId, playing, files, request, timer;
    let hasEnded = false;
    let isLive = false;
    let failures = 0;
    let state = '';
    let hasPlayed = false;
    let wasAttached = false;
    let destroyed = false;

    async function get(url) {
      request = new AbortController();
      const limit = setTimeout(() => request.abort(), TIMEOUT_MS);
      try {
        const response = await fetch(url, { cache: 'no-store', credentials: 'omit', signal: request.signal });
        const { ok, status } = response;
        const body = await response.text();
        if (!ok) throw Object.assign(new Error(`status ${status}`), { status, url, body });
        return body;
      } finally {
        clearTimeout(limit);
      }
    }

    const getJson = async (url) => JSON.parse(await get(url));

    function become(next, detail) {
      state = next;
      host.dispatchEvent(
        new CustomEvent(`channel${next}`, { bubbles: true, detail: { channelId, ...detail } }),
      );
    }

    function stopPlaying() {
      eventId = undefined;
      if (playing) playing.stop();
      playing = undefined;
    }

    function start(id, item, autoplay) {
      const playlistUrl = id === undefined ? undefined : at('v2/media', id);
      playing = play(view, {
        item,
        getItem: id === undefined ? async () => item : () => getItem(id),
        playlistUrl,
        isChannel: channelUrl !== undefined,
        autoplay,
        format,
        options: player,
        getText: get,
        report(next, detail) {
          if (next === 'playing') isLive = detail.isLive;
          hasEnded = next === 'ended';
          host.dispatchEvent(
            new CustomEvent('playback', { bubbles: true, detail: { state: next, ...detail } }),
          );
        },
      });
      files = filesOf(item);
    }

    const getItem = async (id) => (await getJson(at('v2/media', id))).playlist[0];
    const filesOf = ({ sources }) => JSON.stringify((sources || []).map(({ file }) => file));

    /** A live event that has ended is a replay from then on, at other addresses. */
    async function lookAtMedia() {
      if (playing && !(hasEnded && isLive && mediaId !== undefined)) {
        await playing.look();
        return;
      }
      const item = ownItem ?? (await getItem(mediaId));
      if (destroyed || (playing && filesOf(item) === files)) return;
      const isReplay = playing !== undefined;
      stopPlaying();
      hasEnded = false;
      start(mediaId, item, !isReplay);
      await playing.look();
    }

    async function lookAtChannel() {
      const channel = await getJson(channelUrl);
      const current = channel.status === 'active' ? channel.current_event : undefined;
      if (destroyed) return;
      if (current && current === eventId) {
        await playing.look();
        return;
      }
      stopPlaying();
      if (!current) {
        view.show('waiting', hasPlayed ? 'ended' : 'waiting');
        if (state !== 'idle') become('idle');
        return;
      }
      const item = await getItem(current);
      if (destroyed) return;
      start(current, item, true);
      eventId = current;
      hasPlayed = true;
      become('active', { eventId: current, title: String(item.title || '') });
      await playing.look();
    }

    /** Keeps playing while the server fails, but not when the channel is gone. */
    function excuse(error) {
      if (channelUrl === undefined) {
        if (!playing) view.show('waiting', error.status === 404 ? 'absent' : 'trouble');
      } else if (error.status === 404 && error.url === channelUrl) {
        stopPlaying();
        view.show('unknown', 'unknown');
        if (state === 'active') become('idle');
      } else if (eventId === undefined) {
        // The playlist of an event may come a little later than the event.
        if (error.status === 404) view.show('waiting', 'starting');
        else view.show('trouble', 'trouble');
      }
    }

    async function poll() {
      let wait = POLL_MS;
      try {
        await (channelUrl === undefined ? lookAtMedia() : lookAtChannel());
        failures = 0;
      } catch (error) {
        if (destroyed) return;
        wait = POLL_MS * looksAfter(failures);
        failures += 1;
        excuse(error);
      }
      if (wasAttached && !view.stage.isConnected) destroy();
      wasAttached = view.stage.isConnected;
      if (!destroyed) timer = setTimeout(poll, wait);
    }

    function destroy() {
      if (destroyed) return;
      destroyed = true;
      clearTimeout(timer);
      if (request) request.abort();
      stopPlaying();
      view.stage.remove();
      running.delete(host);
    }

    const embed = { element: host, destroy };
    running.set(host, embed);
    host.append(view.stage);
    if (channelUrl === undefined) view.show('media', 'loading');
    else view.show('waiting', 'waiting');
    poll();
    return embed;
  }

  window.channelEmbed = { setup };
})();
