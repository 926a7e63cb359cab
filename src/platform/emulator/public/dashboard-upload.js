/* What script adds to forms with a file: dropping it, how far it is, cancelling, and parts that go again when they fail. */
'use strict';

(() => {
  const RETRIES = 4;
  const RETRY_MS = 1000;
  const PARTS_LISTED = 1000;
  /** What is under way or has failed, so that a page is not left by mistake. */
  const underWay = new Set();

  const announce = (text) => {
    document.getElementById('announcement').textContent = text;
  };

  const sizeOf = (bytes) =>
    bytes < 1e6
      ? `${Math.max(Math.round(bytes / 1e3), 1)} kB`
      : `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;

  /** What an answer says against what was sent, as a sentence. */
  function complaintOf(status, text) {
    try {
      return JSON.parse(text)
        .errors.map(({ description }) => description)
        .join(' ');
    } catch {
      return `The emulator answered ${status}.`;
    }
  }

  class Refusal extends Error {}

  /** Asks the dashboard. What comes back is JSON. */
  async function ask(path, body, signal) {
    let answer;
    try {
      answer = await fetch(path, { method: 'POST', headers: { accept: 'application/json' }, body, signal });
    } catch (thrown) {
      if (signal?.aborted) throw thrown;
      throw new Refusal('The emulator cannot be reached. Is it running?');
    }
    const text = await answer.text();
    if (!answer.ok) throw new Refusal(complaintOf(answer.status, text));
    return text === '' ? {} : JSON.parse(text);
  }

  /** Sends bytes to a link; unlike fetch, this tells how far it is. */
  function put(link, bytes, signal, progress) {
    return new Promise((resolve, reject) => {
      const sender = new XMLHttpRequest();
      const cut = () => sender.abort();
      // The same host by the page's own scheme, which a proxy may have changed.
      const { pathname, search } = new URL(link);
      sender.open('PUT', pathname + search);
      sender.upload.addEventListener('progress', ({ loaded }) => progress(loaded));
      sender.addEventListener('loadend', () => signal.removeEventListener('abort', cut));
      sender.addEventListener('load', () => {
        if (sender.status < 300) resolve();
        else reject(new Refusal(complaintOf(sender.status, sender.responseText)));
      });
      sender.addEventListener('error', () => reject(new Error('The connection broke.')));
      sender.addEventListener('abort', () => reject(new DOMException('', 'AbortError')));
      signal.addEventListener('abort', cut);
      sender.send(bytes);
    });
  }

  /** Tries again when the connection broke, not when the answer was no. */
  async function again(signal, send) {
    for (let tries = 1; ; tries += 1) {
      try {
        return await send();
      } catch (thrown) {
        if (signal.aborted || thrown instanceof Refusal || tries > RETRIES) throw thrown;
        await new Promise((done) => setTimeout(done, RETRY_MS * 2 ** (tries - 1)));
      }
    }
  }

  const withToken = ({ upload_token: token }) => ({ headers: { authorization: `Bearer ${token}` } });

  /** The links of all parts that a file has, with what has come already. */
  async function partsOf(begun, count, signal) {
    const parts = [];
    for (let page = 1; parts.length < count; page += 1) {
      const path = `/v2/uploads/${begun.upload_id}/parts?page=${page}&page_length=${PARTS_LISTED}`;
      const answer = await fetch(path, { ...withToken(begun), signal });
      if (!answer.ok) throw new Refusal(complaintOf(answer.status, await answer.text()));
      parts.push(...(await answer.json()).parts);
    }
    return parts.slice(0, count);
  }

  async function sendParts(begun, file, partBytes, signal, progress) {
    const count = Math.ceil(file.size / partBytes);
    let sent = 0;
    for (const { id, upload_link: link, etag } of await again(signal, () => partsOf(begun, count, signal))) {
      const part = file.slice((id - 1) * partBytes, id * partBytes);
      const before = sent;
      if (etag === undefined)
        await again(signal, () => put(link, part, signal, (loaded) => progress(before + loaded)));
      sent += part.size;
      progress(sent);
    }
    const path = `/v2/uploads/${begun.upload_id}/complete`;
    const answer = await again(signal, () => fetch(path, { method: 'PUT', ...withToken(begun), signal }));
    if (!answer.ok) throw new Refusal(complaintOf(answer.status, await answer.text()));
  }

  /** Where a tab remembers an upload in parts that was not completed: the same file goes on where it ended. */
  const memoryOf = (form, { name, size, lastModified }) =>
    `upload ${form.dataset.begin} ${name} ${size} ${lastModified}`;

  async function begin(form, file, fields, signal) {
    const remembered = sessionStorage.getItem(memoryOf(form, file));
    if (remembered !== null) {
      const begun = JSON.parse(remembered);
      try {
        await partsOf(begun, 1, signal);
        return begun;
      } catch (thrown) {
        if (!(thrown instanceof Refusal)) throw thrown;
        sessionStorage.removeItem(memoryOf(form, file));
      }
    }
    const body = new URLSearchParams(fields);
    if (body.get('title') === null) body.set('title', file.name.replace(/\.[^.]*$/, ''));
    if (file.size > Number(form.dataset.partBytes)) body.set('method', 'multipart');
    const begun = await ask(form.dataset.begin, body, signal);
    if (begun.upload_id) sessionStorage.setItem(memoryOf(form, file), JSON.stringify(begun));
    return begun;
  }

  async function send(form, file, fields, row) {
    const { signal } = row.control;
    row.begun ??= await begin(form, file, fields, signal);
    const progress = (loaded) => row.show(loaded);
    if (row.begun.upload_link) await again(signal, () => put(row.begun.upload_link, file, signal, progress));
    else await sendParts(row.begun, file, Number(form.dataset.partBytes), signal, progress);
    sessionStorage.removeItem(memoryOf(form, file));
  }

  /** Shows one file that is sent: its name, how far it is, and a button. */
  function rowOf(form, file) {
    const item = document.createElement('li');
    item.className = 'transfer';
    const name = Object.assign(document.createElement('span'), { className: 'transfer-name', dir: 'auto' });
    name.textContent = file.name;
    const bar = Object.assign(document.createElement('progress'), { max: Math.max(file.size, 1), value: 0 });
    bar.setAttribute('aria-label', file.name);
    const says = Object.assign(document.createElement('span'), { className: 'transfer-says' });
    const button = Object.assign(document.createElement('button'), {
      type: 'button',
      className: 'button button-small',
    });
    item.append(name, bar, says, button);
    form.querySelector('.transfers').append(item);
    const row = { item, bar, says, button, begun: undefined, control: new AbortController() };
    row.show = (loaded) => {
      bar.value = Math.min(loaded, file.size);
      const percent = Math.floor((100 * bar.value) / bar.max);
      says.textContent = `${percent} % of ${sizeOf(file.size)}`;
    };
    return row;
  }

  function relabel(button, label, name, act) {
    button.textContent = label;
    const unseen = Object.assign(document.createElement('span'), {
      className: 'unseen',
      textContent: ` ${name}`,
    });
    button.append(unseen);
    button.onclick = act;
  }

  /** What was begun for a file that is not to come, such as its media, goes. */
  async function takeBack(form, file, row) {
    sessionStorage.removeItem(memoryOf(form, file));
    const undo = row.begun?.undo;
    row.begun = undefined;
    if (undo) await ask(undo).catch(() => undefined);
  }

  /** Ends an upload and takes back what was begun for it. */
  async function cancel(form, file, row) {
    row.control.abort();
    underWay.delete(row);
    row.item.remove();
    announce(`The upload of ${file.name} was cancelled.`);
    await takeBack(form, file, row);
    document.dispatchEvent(new Event('dashboard-changed'));
  }

  async function transfer(form, file, fields, row = rowOf(form, file)) {
    const { item, says, button } = row;
    row.control = new AbortController();
    underWay.add(row);
    item.classList.remove('transfer-failed');
    row.show(0);
    relabel(button, 'Cancel', file.name, () => cancel(form, file, row));
    try {
      await send(form, file, fields, row);
    } catch (thrown) {
      if (row.control.signal.aborted) return;
      underWay.delete(row);
      item.classList.add('transfer-failed');
      says.textContent =
        thrown instanceof Refusal ? thrown.message : 'The connection broke. What was sent is kept for a day.';
      announce(`${file.name} was not uploaded. ${says.textContent}`);
      if (thrown instanceof Refusal) await takeBack(form, file, row);
      relabel(button, 'Try again', file.name, () => transfer(form, file, fields, row));
      return;
    }
    underWay.delete(row);
    item.classList.add('transfer-done');
    says.textContent = 'Uploaded.';
    announce(`${file.name} was uploaded.`);
    button.remove();
    if (row.begun.page) {
      const link = Object.assign(document.createElement('a'), { href: row.begun.page, textContent: 'Open' });
      link.className = 'button button-small';
      item.append(link);
    }
    document.dispatchEvent(new Event('dashboard-changed'));
  }

  /** One after the other: together they would take longer, each of them. */
  async function transferAll(form, files) {
    const fields = [...new FormData(form)].filter(([, value]) => typeof value === 'string');
    const rows = files.map((file) => [file, rowOf(form, file)]);
    for (const [file, row] of rows) {
      row.says.textContent = `waits, ${sizeOf(file.size)}`;
      relabel(row.button, 'Cancel', file.name, () => cancel(form, file, row));
    }
    for (const [file, row] of rows) if (!row.control.signal.aborted) await transfer(form, file, fields, row);
  }

  const inputOf = (form) => form.querySelector('input[type=file]');

  function take(form, list) {
    const input = inputOf(form);
    const files = [...list].slice(0, input.multiple ? undefined : 1);
    if (files.length === 0) return;
    if ('withFields' in form.dataset) {
      const chosen = new DataTransfer();
      chosen.items.add(files[0]);
      input.files = chosen.files;
      announce(`${files[0].name} is chosen. Send it with the form.`);
      return;
    }
    input.value = '';
    if (!input.multiple) form.querySelector('.transfers').replaceChildren();
    transferAll(form, files);
  }

  for (const form of document.querySelectorAll('form[data-begin]')) {
    const input = inputOf(form);
    input.addEventListener('change', () => {
      if (!('withFields' in form.dataset)) take(form, [...input.files]);
    });
    form.addEventListener('submit', (event) => {
      if (input.files.length === 0) return;
      event.preventDefault();
      const files = [...input.files];
      const row = rowOf(form, files[0]);
      const fields = [...new FormData(form)].filter(([, value]) => typeof value === 'string');
      transfer(form, files[0], fields, row).then(() => {
        if (row.item.classList.contains('transfer-done')) form.reset();
      });
    });
    form.addEventListener('dragover', (event) => {
      if (!event.dataTransfer.types.includes('Files')) return;
      event.preventDefault();
      form.classList.add('over');
    });
    form.addEventListener('dragleave', (event) => {
      if (!form.contains(event.relatedTarget)) form.classList.remove('over');
    });
    form.addEventListener('drop', (event) => {
      event.preventDefault();
      form.classList.remove('over');
      take(form, event.dataTransfer.files);
    });
  }

  // A file that is dropped beside a zone would replace the page.
  for (const type of ['dragover', 'drop']) {
    addEventListener(type, (event) => {
      if (event.dataTransfer?.types.includes('Files') && !event.defaultPrevented) event.preventDefault();
    });
  }

  addEventListener('beforeunload', (event) => {
    if (underWay.size > 0) event.preventDefault();
  });
})();
