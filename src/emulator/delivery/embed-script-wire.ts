import { EMBED_VIEW } from './embed-view';

const MANUAL = `/*
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
 */`;

const EMBED = `
  const POLL_MS = 5000;
  /** After the first failure in a row, the second, and so on. */
  const RETRY_MS = [5000, 10000, 20000, 40000, 60000];
  const TIMEOUT_MS = 10000;

  const script = document.currentScript;
  const home = script && script.src ? new URL('..', script.src).href : document.baseURI;
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
    if (!found) throw new TypeError('channelEmbed.setup: there is no element ' + String(element));
    return found;
  }

  function setup(options) {
    const { channelId, element, player, messages, baseUrl } = options || {};
    if (typeof channelId !== 'string' || channelId === '') {
      throw new TypeError('channelEmbed.setup: channelId must be the id of a channel');
    }
    const base = new URL(baseUrl || home, document.baseURI);
    const channelUrl = new URL('live/channels/' + encodeURIComponent(channelId) + '.json', base).href;
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
        if (!response.ok) throw Object.assign(new Error('status ' + response.status), { status: response.status, url });
        return await response.text();
      } finally {
        clearTimeout(limit);
      }
    }

    const getJson = async (url) => JSON.parse(await get(url));

    function become(next, detail) {
      state = next;
      host.dispatchEvent(new CustomEvent('channel' + next, { bubbles: true, detail: { channelId, ...detail } }));
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
      const playlistUrl = new URL('v2/media/' + encodeURIComponent(current), base).href;
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
`;

/** The channel embed as it is served: one classic script for browsers (ES2020), without dependencies or a build. */
export const EMBED_SCRIPT = `${MANUAL}
(function () {
  'use strict';
${EMBED_VIEW}${EMBED}})();
`;
