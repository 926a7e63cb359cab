/*
 * Channel embed: plays a live channel's events as they come, and shows a waiting message in between.
 *
 *   <div id="stage"></div>
 *   <script src="https://example.com/embed/channel.js"></script>
 *   <script>channelEmbed.setup({ channelId: 'abcd1234', element: '#stage' })</script>
 *
 * Options of setup():
 *   channelId  id of the channel (required)
 *   element    where to show it, an element or a selector; without it, right after the calling script
 *   player     options for the page's own player (window.jwplayer), which is used when there is one
 *   messages   texts to show instead of the English ones: the names are those of TEXTS below
 *   baseUrl    address of the delivery, when the script itself comes from elsewhere
 *
 * setup() answers { element, destroy }. The element gets the events "channelactive" (detail: channelId, eventId,
 * title) and "channelidle" (detail: channelId). The embed ends with destroy(), or when it is taken from the page.
 */
(() => {
  'use strict';

  const TEXTS = {
    waiting: 'Waiting for the event to begin',
    waitingDetail: 'The player starts here by itself.',
    starting: 'The event is about to begin',
    startingDetail: 'The player starts here by itself.',
    ended: 'The event has ended',
    endedDetail: 'The next one starts here by itself.',
    unknown: 'This channel does not exist',
    unknownDetail: 'Check the channel id.',
    trouble: 'The channel cannot be reached',
    troubleDetail: 'Trying again in a moment.',
    pictureless: 'The event is live',
    picturelessDetail: 'The stream has no picture yet. It starts here by itself.',
    unplayable: 'The event is live',
    unplayableDetail: 'The page needs a player for HLS to show it here.',
    live: 'Live',
  };
  const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
  const COVER = { position: 'absolute', inset: '0', width: '100%', height: '100%' };

  let count = 0;

  function make(tag, style, text) {
    const element = document.createElement(tag);
    Object.assign(element.style, style);
    if (text) element.textContent = text;
    return element;
  }

  function buildStage(texts) {
    const stage = make('div', {
      position: 'relative',
      boxSizing: 'border-box',
      width: '100%',
      aspectRatio: '16 / 9',
      overflow: 'hidden',
      borderRadius: '12px',
      color: '#eaf0ee',
      fontFamily: FONT,
      lineHeight: '1.4',
      textAlign: 'center',
      background: 'radial-gradient(120% 120% at 20% 0%, #1f4744 0%, #15201f 55%, #0c1413 100%) #1f4744',
    });
    const screen = make('div', COVER);
    const panel = make('div', {
      ...COVER,
      boxSizing: 'border-box',
      display: 'flex',
      flexDirection: 'column',
      alignItems: 'center',
      justifyContent: 'center',
      gap: '14px',
      padding: '16px',
      pointerEvents: 'none',
    });
    const dot = make('div', { width: '12px', height: '12px', borderRadius: '50%', background: '#6ed3c8' });
    dot.setAttribute('aria-hidden', 'true');
    if (!matchMedia('(prefers-reduced-motion: reduce)').matches) {
      dot.animate(
        [{ boxShadow: '0 0 0 0 rgba(110,211,200,.6)' }, { boxShadow: '0 0 0 16px rgba(110,211,200,0)' }],
        { duration: 1800, iterations: Infinity, easing: 'ease-out' },
      );
    }
    const words = make('div', {});
    words.setAttribute('role', 'status');
    words.setAttribute('aria-live', 'polite');
    const headline = make('div', {
      fontSize: 'clamp(16px, 2.6vw, 24px)',
      fontWeight: '600',
      overflowWrap: 'anywhere',
    });
    const detail = make('div', { fontSize: 'clamp(13px, 1.7vw, 16px)', color: '#b3c2bf', marginTop: '4px' });
    words.append(headline, detail);
    panel.append(dot, words);
    const badge = make(
      'div',
      {
        position: 'absolute',
        top: '12px',
        left: '12px',
        padding: '2px 10px',
        borderRadius: '6px',
        fontSize: '12px',
        fontWeight: '700',
        letterSpacing: '.06em',
        textTransform: 'uppercase',
        color: '#fff',
        background: '#c81e3a',
        pointerEvents: 'none',
      },
      texts.live,
    );
    stage.append(screen, panel, badge);

    /** Shows a message, or the bare player: then the words are for screen readers alone. */
    function show(state, name, title) {
      stage.dataset.state = state;
      const lines = name ? [title || texts[name], texts[`${name}Detail`]] : [`${texts.live}: ${title}`, ''];
      // What has not changed is not read out again.
      if (headline.textContent !== lines[0]) headline.textContent = lines[0];
      if (detail.textContent !== lines[1]) detail.textContent = lines[1];
      panel.style.opacity = name ? '1' : '0';
      dot.style.display = state === 'waiting' ? '' : 'none';
      badge.style.display = state === 'active' ? '' : 'none';
    }
    return { stage, screen, badge, show };
  }

  function isWebAddress(address) {
    return /^https?:$/.test(new URL(address, document.baseURI).protocol);
  }

  function isPlaylist({ file, type }) {
    return /mpegurl/i.test(type || '') || /\.m3u8(?:[?#]|$)/.test(file);
  }

  /** Whether an HLS playlist lists nothing that could be seen: no segment, and no other playlist. */
  function isEmpty(playlist) {
    return /^#EXTM3U/.test(playlist) && !/^#(EXTINF|EXT-X-STREAM-INF|EXT-X-PART):/m.test(playlist);
  }

  /**
   * Puts a player into the screen, the page's own one or the browser's. stop() takes it away; look(getText) waits for
   * the picture of a stream that has none.
   */
  function play(view, playlistUrl, item, options) {
    view.screen.replaceChildren();
    const holder = make('div', COVER);
    count += 1;
    holder.id = `channel-embed-${count}`;
    view.screen.append(holder);
    const title = String(item.title || '');
    view.show('active', '', title);
    if (typeof window.jwplayer === 'function') {
      view.badge.style.display = 'none';
      const player = window.jwplayer(holder.id);
      player.setup({ width: '100%', height: '100%', ...options, playlist: playlistUrl });
      return { stop: () => player.remove(), look: async () => {} };
    }
    const video = make('video', { ...COVER, objectFit: 'contain' });
    Object.assign(video, { controls: true, autoplay: true, muted: true, playsInline: true });
    video.setAttribute('aria-label', title);
    const source = (item.sources || []).find((each) => isWebAddress(each.file));
    let done = false;
    let stopped = false;
    const say = (name) => {
      video.style.display = name ? 'none' : '';
      view.show('active', name, title);
    };
    const onError = () => say('unplayable');
    video.addEventListener('error', onError);
    holder.append(video);
    if (item.image && isWebAddress(item.image)) video.poster = item.image;
    return {
      stop() {
        stopped = true;
        video.removeEventListener('error', onError);
        video.removeAttribute('src');
        video.load();
        holder.remove();
      },
      async look(getText) {
        if (done) return;
        // A playlist that can't be read from here may well be played.
        const playlist = source && isPlaylist(source) ? await getText(source.file).catch(() => '') : '';
        if (stopped) return;
        if (isEmpty(playlist)) {
          say('pictureless');
          return;
        }
        done = true;
        if (!source) {
          onError();
          return;
        }
        say('');
        video.src = source.file;
      },
    };
  }

  const POLL_MS = 5000;
  /** After the first failure in a row, the second, and so on. */
  const RETRY_MS = [5000, 10000, 20000, 40000, 60000];
  const TIMEOUT_MS = 10000;

  const script = document.currentScript;
  const home = script?.src ? new URL('..', script.src).href : document.baseURI;
  const running = new WeakMap();

  function hostFor(element) {
    if (element instanceof Element) return element;
    if (element === undefined) {
      const host = make('div', {});
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
    const { channelId, element, player, messages, baseUrl } = options || {};
    if (typeof channelId !== 'string' || channelId === '') {
      throw new TypeError('channelEmbed.setup: channelId must be the id of a channel');
    }
    const base = new URL(baseUrl || home, document.baseURI);
    const channelUrl = new URL(`live/channels/${encodeURIComponent(channelId)}.json`, base).href;
    const host = hostFor(element);
    if (running.has(host)) running.get(host).destroy();
    const view = buildStage({ ...TEXTS, ...messages });
    let eventId, playing, request, timer;
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
        if (!response.ok)
          throw Object.assign(new Error(`status ${response.status}`), { status: response.status, url });
        return await response.text();
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

    async function look() {
      const channel = await getJson(channelUrl);
      const current = channel.status === 'active' ? channel.current_event : undefined;
      if (destroyed) return;
      if (current && current === eventId) {
        await playing.look(get);
        return;
      }
      stopPlaying();
      if (!current) {
        view.show('waiting', hasPlayed ? 'ended' : 'waiting');
        if (state !== 'idle') become('idle');
        return;
      }
      const playlistUrl = new URL(`v2/media/${encodeURIComponent(current)}`, base).href;
      const item = (await getJson(playlistUrl)).playlist[0];
      if (destroyed) return;
      playing = play(view, playlistUrl, item, player);
      eventId = current;
      hasPlayed = true;
      become('active', { eventId: current, title: String(item.title || '') });
      await playing.look(get);
    }

    /** What is on stays on while the server fails; a channel that is gone does not. */
    function excuse(error) {
      if (error.status === 404 && error.url === channelUrl) {
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
        await look();
        failures = 0;
      } catch (error) {
        if (destroyed) return;
        wait = RETRY_MS[Math.min(failures, RETRY_MS.length - 1)];
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
    view.show('waiting', 'waiting');
    poll();
    return embed;
  }

  window.channelEmbed = { setup };
})();
