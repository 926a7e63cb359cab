/* Adds to forms with a file: dropping it, progress, cancelling, and parts that are sent again when they fail. */
'use strict';

(() => {
  const RETRIES = 4;
  const RETRY_MS = 1000;
  const PARTS_LISTED = 1000;
  /** Where a tab remembers uploads in parts: nowhere in a browser that blocks cookies. */
  const storage = (() => {
    try {
      return sessionStorage;
    } catch {
      return { getItem: () => null, setItem() {}, removeItem() {} };
    }
  })();
  /** Rows under way: the page asks before it is left. */
  const underWay = new Set();

  const sizeOf = (bytes) =>
    bytes < 1e6
      ? `${Math.max(Math.round(bytes / 1e3), 1)} kB`
      : `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;

  /** A refusal, which is not tried again. */
  class Refusal extends Error {
    constructor(status, text) {
      let message = `The emulator answered ${status}.`;
      try {
        message = JSON.parse(text)
          .errors.map(({ description }) => description)
          .join(' ');
      } catch {
        // The answer is not from the emulator.
      }
      super(message);
    }
  }

  async function ask(path, options) {
    const answer = await fetch(path, options);
    const text = await answer.text();
    if (!answer.ok) throw new Refusal(answer.status, text);
    return text === '' ? {} : JSON.parse(text);
  }

  const post = (path, body) => ask(path, { method: 'POST', headers: { accept: 'application/json' }, body });

  /** Sends bytes to a link; unlike fetch, XMLHttpRequest reports progress. */
  function put(link, bytes, signal, progress) {
    return new Promise((resolve, reject) => {
      const sender = new XMLHttpRequest();
      const abort = () => sender.abort();
      // The same host by the page's own scheme, which a proxy may have changed.
      const { pathname, search } = new URL(link);
      sender.open('PUT', pathname + search);
      sender.upload.onprogress = ({ loaded }) => progress(loaded);
      sender.onload = () =>
        sender.status < 300 ? resolve() : reject(new Refusal(sender.status, sender.responseText));
      sender.onerror = () => reject(new Error('The connection broke.'));
      sender.onabort = () => reject(new DOMException('', 'AbortError'));
      sender.onloadend = () => signal.removeEventListener('abort', abort);
      signal.addEventListener('abort', abort);
      sender.send(bytes);
    });
  }

  async function retried(signal, send) {
    for (let tries = 1; ; tries += 1) {
      try {
        signal.throwIfAborted();
        return await send();
      } catch (thrown) {
        if (signal.aborted || thrown instanceof Refusal || tries > RETRIES) throw thrown;
        await new Promise((done) => setTimeout(done, RETRY_MS * 2 ** (tries - 1)));
      }
    }
  }

  const withToken = ({ upload_token: token }, signal) => ({
    headers: { authorization: `Bearer ${token}` },
    signal,
  });

  async function partsOf(begun, count, signal) {
    const parts = [];
    for (let page = 1; parts.length < count; page += 1) {
      const path = `/v2/uploads/${begun.upload_id}/parts?page=${page}&page_length=${PARTS_LISTED}`;
      parts.push(...(await ask(path, withToken(begun, signal))).parts);
    }
    return parts.slice(0, count);
  }

  async function sendParts(begun, file, partBytes, signal, progress) {
    const count = Math.ceil(file.size / partBytes);
    let sent = 0;
    for (const { id, upload_link: link, etag } of await retried(signal, () =>
      partsOf(begun, count, signal),
    )) {
      const part = file.slice((id - 1) * partBytes, id * partBytes);
      const before = sent;
      const send = () => put(link, part, signal, (loaded) => progress(before + loaded));
      if (etag === undefined) await retried(signal, send);
      sent += part.size;
      progress(sent);
    }
    const complete = { method: 'PUT', ...withToken(begun, signal) };
    await retried(signal, () => ask(`/v2/uploads/${begun.upload_id}/complete`, complete));
  }

  /** Where a tab remembers an upload in parts: the same file goes on where it ended. */
  const memoryOf = (form, { name, size, lastModified }) =>
    `upload ${form.dataset.begin} ${name} ${size} ${lastModified}`;

  async function begin(form, file, fields, signal) {
    const memory = memoryOf(form, file);
    const remembered = JSON.parse(storage.getItem(memory));
    try {
      if (remembered) await partsOf(remembered, 1, signal);
      if (remembered) return remembered;
    } catch (thrown) {
      if (!(thrown instanceof Refusal)) throw thrown;
      storage.removeItem(memory);
    }
    const body = new URLSearchParams(fields);
    if (body.get('title') === null) body.set('title', file.name.replace(/\.[^.]*$/, ''));
    if (file.size > Number(form.dataset.partBytes)) body.set('method', 'multipart');
    // Ended early, it would not say what it has made.
    const begun = await post(form.dataset.begin, body);
    if (begun.upload_id) storage.setItem(memory, JSON.stringify(begun));
    return begun;
  }

  function rowOf(form, file) {
    const item = document.createElement('li');
    item.className = 'transfer';
    item.innerHTML = `<span class="transfer-name" dir="auto"></span><progress value="0" max="${Math.max(file.size, 1)}"></progress>
      <span class="transfer-says hint">waits, ${sizeOf(file.size)}</span><button type="button" class="outline small"></button>`;
    const [name, bar, says, button] = item.children;
    name.textContent = file.name;
    bar.ariaLabel = file.name;
    form.querySelector('.transfers').append(item);
    const show = (loaded) => {
      bar.value = Math.min(loaded, file.size);
      says.textContent = `${Math.floor((100 * bar.value) / bar.max)} % of ${sizeOf(file.size)}`;
    };
    const row = { form, file, item, says, button, show, begun: undefined, control: new AbortController() };
    relabel(row, 'Cancel', () => cancel(row));
    return row;
  }

  function relabel({ button, file }, label, act) {
    button.innerHTML = `${label}<span class="unseen"></span>`;
    button.lastChild.textContent = ` ${file.name}`;
    button.onclick = act;
  }

  async function takeBack(row) {
    storage.removeItem(memoryOf(row.form, row.file));
    const undo = row.begun?.undo;
    row.begun = undefined;
    if (undo) await retried(new AbortController().signal, () => post(undo)).catch(() => undefined);
  }

  async function cancel(row) {
    row.control.abort();
    underWay.delete(row);
    row.item.remove();
    announce(`The upload of ${row.file.name} was cancelled.`);
    await takeBack(row);
    document.dispatchEvent(new Event('dashboard-changed'));
  }

  async function transfer(row, fields) {
    const { form, file, item, says, button, show } = row;
    const { signal } = row.control;
    underWay.add(row);
    item.classList.remove('transfer-failed');
    show(0);
    relabel(row, 'Cancel', () => cancel(row));
    try {
      row.begun ??= await begin(form, file, fields, signal);
      if (row.begun.upload_link) await retried(signal, () => put(row.begun.upload_link, file, signal, show));
      else await sendParts(row.begun, file, Number(form.dataset.partBytes), signal, show);
    } catch (thrown) {
      if (signal.aborted) return takeBack(row);
      underWay.delete(row);
      item.classList.add('transfer-failed');
      const isRefusal = thrown instanceof Refusal;
      says.textContent = isRefusal
        ? thrown.message
        : 'The connection broke. The sent parts are kept for a day.';
      announce(`${file.name} was not uploaded. ${says.textContent}`);
      if (isRefusal) await takeBack(row);
      // What was refused is corrected in the form.
      const isOfForm = isRefusal && 'withFields' in form.dataset;
      relabel(row, 'Try again', () => (isOfForm ? form.requestSubmit() : transfer(row, fields)));
      return;
    }
    storage.removeItem(memoryOf(form, file));
    underWay.delete(row);
    item.classList.add('transfer-done');
    says.textContent = 'Uploaded.';
    announce(`${file.name} was uploaded.`);
    const { page } = row.begun;
    button.outerHTML = page ? `<a class="button outline small" href="${page}">Open</a>` : '';
    document.dispatchEvent(new Event('dashboard-changed'));
  }

  for (const form of document.querySelectorAll('form[data-begin]')) {
    const input = form.querySelector('input[type=file]');
    const goesWithFields = 'withFields' in form.dataset;
    const send = async (files) => {
      const fields = [...new FormData(form)].filter(([, value]) => typeof value === 'string');
      for (const row of files.map((file) => rowOf(form, file)))
        if (!row.control.signal.aborted) await transfer(row, fields);
    };
    const take = (list) => {
      const files = [...list].slice(0, input.multiple ? undefined : 1);
      if (files.length === 0) return;
      if (goesWithFields) {
        const chosen = new DataTransfer();
        chosen.items.add(files[0]);
        input.files = chosen.files;
        announce(`${files[0].name} is chosen. Send it with the form.`);
        return;
      }
      input.value = '';
      if (!input.multiple) form.querySelector('.transfers').replaceChildren();
      send(files);
    };
    input.addEventListener('change', () => {
      if (!goesWithFields) take([...input.files]);
    });
    form.addEventListener('submit', async (event) => {
      if (input.files.length === 0) return;
      event.preventDefault();
      form.querySelector('.transfer-failed')?.remove();
      await send([...input.files]);
      if (form.querySelector('.transfer:last-child.transfer-done')) form.reset();
    });
    form.addEventListener('dragover', (event) => {
      if (event.dataTransfer.types.includes('Files')) form.classList.add('over');
    });
    form.addEventListener('dragleave', (event) => {
      if (!form.contains(event.relatedTarget)) form.classList.remove('over');
    });
    form.addEventListener('drop', (event) => {
      form.classList.remove('over');
      take(event.dataTransfer.files);
    });
  }

  // A file that is dropped next to a zone must not replace the page.
  for (const type of ['dragover', 'drop'])
    addEventListener(type, (event) => {
      if (event.dataTransfer?.types.includes('Files')) event.preventDefault();
    });

  addEventListener('beforeunload', (event) => {
    if (underWay.size > 0) event.preventDefault();
  });
})();
