import type { Environment } from '../../src/http/config';
import { startUploads } from './start-uploads';

export type TestLibraryPages = Awaited<ReturnType<typeof startLibraryPages>>;

/** An emulator with what tests of the library's pages do again and again. */
export async function startLibraryPages(env: Environment = {}) {
  const emulator = await startUploads(env);
  const { admin, unauthenticated, siteId, context, advance } = emulator;
  /** Makes a media by the management API. */
  const createMedia = async (metadata: object = {}, upload: object = {}) => {
    const { body } = await admin.post(`/v2/sites/${siteId}/media/`).send({ metadata, upload }).expect(201);
    const media = context.state.media.find(body.id);
    if (!media) throw new Error('The media is not there.');
    return media;
  };
  return {
    ...emulator,
    /** Sends a form of the dashboard. Several values of a field are an array. */
    post: async (path: string, fields: object = {}) =>
      unauthenticated.post(`/dashboard/${path}`).type('form').send(fields),
    /** The text of a page of the dashboard. */
    page: async (path: string) => (await unauthenticated.get(`/dashboard/${path}`).expect(200)).text,
    createMedia,
    /** Makes a media whose content is elsewhere, and lets it become ready. */
    async createReady(metadata: object = {}) {
      const media = await createMedia(metadata, {
        method: 'external',
        source_url: 'https://cdn.example.com/a.mp4',
      });
      await advance(5);
      return media;
    },
  };
}

/** The fields of a form, as a browser would send them unchanged. @param mark a part of its tag. */
export function fieldsOfForm(page: string, mark: string): Record<string, string | string[]> {
  const start = page.indexOf(mark);
  if (start === -1) throw new Error(`No form with ${mark}.`);
  const form = page.slice(page.lastIndexOf('<form', start), page.indexOf('</form>', start));
  const fields: Record<string, string | string[]> = {};
  const add = (name: string, value: string) => {
    const before = fields[name];
    fields[name] = before === undefined ? value : [...[before].flat(), value];
  };
  const text = (raw: string) =>
    raw
      .replaceAll(/&#(\d+);/g, (_entity, code) => String.fromCharCode(Number(code)))
      .replaceAll('\0', '\ufffd');
  const controls =
    /<input\b([^>]*)>|<textarea\b([^>]*)>\n?([\s\S]*?)<\/textarea>|<select\b([^>]*)>([\s\S]*?)<\/select>/g;
  for (const [, input, area, content = '', select, options = ''] of form.matchAll(controls)) {
    const attributes = input ?? area ?? select ?? '';
    const name = /\bname="([^"]*)"/.exec(attributes)?.[1];
    if (name === undefined || /type="file"/.test(attributes)) continue;
    if (/type="checkbox"/.test(attributes) && !/ checked/.test(attributes)) continue;
    const chosen =
      /<option value="([^"]*)" selected>/.exec(options) ?? /<option value="([^"]*)"/.exec(options);
    const value = text(/\bvalue="([^"]*)"/.exec(attributes)?.[1] ?? '');
    // Browsers send a time without seconds that are 0, and no line breaks of a visible input.
    const isTime = /type="datetime-local"/.test(attributes);
    const line = /type="hidden"/.test(attributes) ? value : value.replaceAll(/[\r\n]/g, '');
    if (input !== undefined) add(name, isTime ? line.replace(/(T\d\d:\d\d):00$/, '$1') : line);
    else if (area !== undefined) add(name, text(content).replaceAll(/\r\n?|\n/g, '\r\n'));
    else add(name, text(chosen?.[1] ?? ''));
  }
  return fields;
}
