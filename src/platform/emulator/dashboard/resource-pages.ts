import type { Express } from 'express';
import * as z from 'zod';
import { HttpError } from '../../../http/errors';
import { type Content, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import type { SetFields } from '../resources/fields';
import type { PathIds, View } from '../resources/resource';
import { viewOf } from '../resources/resource-routes';
import { type Column, card, copyable, deleteCard, type Fact, facts, time } from './elements';
import {
  type Answer,
  type Asked,
  absent,
  type FormBody,
  formCard,
  mountPage,
  type PageRequest,
  refusedFirst,
  sentOf,
  wantsJson,
} from './forms';
import { layout } from './layout';
import { type List, listOf } from './list';
import { formOf, inputsOf, readFields } from './resource-form';

/** An item, as far as every page shows it. */
interface Item {
  readonly id: string;
  readonly siteId?: string;
  readonly created: Date;
  readonly lastModified: Date;
  readonly metadata: object;
  readonly relationships?: object;
}

/** The API's own calls, as far as pages need them. */
interface Calls {
  create(ids: PathIds, body: unknown, view: View): Promise<object>;
  update(ids: PathIds, body: unknown, view: View): object;
  remove(ids: PathIds): void;
}

/** The fields that a form asks for, by the part of the body that has them. */
interface FormFields {
  readonly metadata: SetFields;
  readonly relationships?: SetFields;
}

/** The list, the form and the page of a resource, as data. */
export interface ResourcePages<T extends Item> extends Omit<List<T>, 'path' | 'caption' | 'empty'> {
  readonly intro: string;
  /** For a list without items; otherwise that one can be made. */
  readonly empty?: Content;
  readonly store: { all(): readonly T[]; find(id: string): T | undefined };
  readonly nameOf: (item: T) => string;
  /** The cell with the name in a list; otherwise the name and the id. */
  readonly nameCell?: (item: T) => Content;
  readonly scripts?: readonly ('upload' | 'order')[];
  readonly newForm: FormFields & {
    /** Whether the form asks for a site. */
    readonly hasSite?: false;
    readonly calls: (sent: FormBody) => Calls;
    /** In addition to the fields. */
    readonly body?: (sent: FormBody) => object;
    /** The inputs, where they are not just those of the fields. */
    readonly inputs?: (sent: FormBody, site: Content) => Content;
    readonly above?: (asked: Asked) => Content;
    /** Notices the new item, and answers the script that made it. */
    readonly made?: (id: string, origin: string) => object | undefined;
  };
  readonly calls: (item: T) => Calls;
  /** The fields of the form that changes an item; there is none without them. */
  readonly fields?: (item: T) => FormFields;
  readonly introOf?: (item: T) => string;
  readonly aside?: (item: T) => Content;
  /** The parts of the page by names, with the form at its place. */
  readonly parts?: (item: T, asked: Asked, form: Content) => Readonly<Record<string, Content>>;
  /** More facts than every item has; no card of facts without them. */
  readonly facts?: (item: T, origin: string) => readonly Fact[];
  /** What goes with the item when it is deleted, and what else happens. */
  readonly farewell: readonly [says: string, consequence?: string];
}

/** A form that was sent to a path below an item. */
export interface Sent {
  readonly request: PageRequest;
  readonly sent: FormBody;
  readonly view: View;
}

/** Changes an item. @returns what was done, as `picture-added`, where its page says it; otherwise see `mountPage`. */
export type Change<T> = (item: T, sent: Sent) => Answer | Promise<Answer>;

/** Routes a form below the page of an item. @param form the id of the form; without it, a refusal has its own page. */
export type MountForm<T> = (below: string, change: Change<T>, form?: string) => void;

/** Mounts the list, the form and the page of a resource. @returns mounts its other forms. */
export function mountResourcePages<T extends Item>(
  app: Express,
  context: EmulatorContext,
  kind: ResourcePages<T>,
): MountForm<T> {
  const { newForm } = kind;
  const { one: noun, many: plural } = kind.noun;
  const path = `/dashboard/${plural}`;
  /** The name of the id in the paths of the API. */
  const idName = `${noun}Id`;
  const site = newForm.hasSite === false ? {} : siteField(context.seeds.siteIds);
  const pathOf = ({ id }: { readonly id: string }) => `${path}/${id}`;
  const nameCell = (item: T) =>
    kind.nameCell?.(item) ??
    html`<a class="name" href="${pathOf(item)}" dir="auto">${kind.nameOf(item)}</a>${idLine(context, item)}`;
  const name: Column<T> = [titleCase(noun), nameCell];
  const list: List<T> = {
    empty: html`<p>There is no ${noun} yet. Make one with the form below, or with the management API.</p>`,
    ...kind,
    path,
    caption: titleCase(plural),
    columns: (query) => [name, ...kind.columns(query)],
  };

  const listPage = (asked: Asked) => {
    const sent = sentOf(asked, 'new');
    const { metadata, relationships } = newForm;
    const fields =
      newForm.inputs?.(sent, inputsOf(site, sent, 'new')) ??
      inputsOf({ ...metadata, ...relationships, ...site }, sent, 'new');
    const form = { id: 'new', path, submit: `Create ${noun}`, fields };
    return layout({
      title: titleCase(plural),
      section: path,
      aside: html`<a class="button" href="#new">New ${noun}</a>`,
      intro: kind.intro,
      content: refusedFirst(asked, {
        list: listOf(plural, kind.store.all(), asked.query, list),
        upload: newForm.above?.(asked),
        new: formCard(asked, `New ${noun}`, form),
      }),
      ...(kind.scripts && { scripts: kind.scripts }),
      asked,
    });
  };
  mountPage(app, path, listPage, {
    form: 'new',
    async change(request, sent) {
      const siteId = newForm.hasSite === false ? '' : siteOf(context, sent);
      const view = viewOf(context, request);
      const body = { ...bodyOf(newForm, sent), ...newForm.body?.(sent) };
      const made = await newForm.calls(sent).create({ siteId }, body, view);
      const id = 'id' in made ? String(made.id) : '';
      const answer = newForm.made?.(id, view.origin);
      return wantsJson(request) ? answer : `${path}/${id}?done=${noun}-created`;
    },
  });

  const itemOf = ({ params }: PageRequest) => {
    const item = kind.store.find(params[idName] ?? '');
    if (item) return item;
    throw absent(`There is no ${noun} with this id.`);
  };
  const idsOf = ({ siteId = '', id }: T) => ({ siteId, [idName]: id });
  const settings = (item: T, asked: Asked) => {
    const fields = kind.fields?.(item);
    if (!fields) return undefined;
    const inForm = { ...fields.metadata, ...fields.relationships };
    const sent = sentOf(asked, 'settings', formOf(inForm, { ...item.metadata, ...item.relationships }));
    const inputs = inputsOf(inForm, sent, 'settings');
    const form = { id: 'settings', path: pathOf(item), submit: `Save ${noun}`, fields: inputs };
    return formCard(asked, 'Settings', form);
  };
  const page = (asked: Asked) => {
    const item = itemOf(asked.request);
    const form = settings(item, asked);
    const always: readonly Fact[] = [
      [`${titleCase(noun)} id`, copyable(`${noun} id`, item.id)],
      item.siteId !== undefined && ['Site', html`<code>${item.siteId}</code>`],
      ['Created', time(item.created)],
      ['Last change', time(item.lastModified)],
    ];
    const own = kind.facts?.(item, viewOf(context, asked.request).origin);
    return layout({
      title: kind.nameOf(item),
      above: path,
      intro: kind.introOf?.(item),
      aside: kind.aside?.(item),
      content: html`${refusedFirst(asked, {
        ...(kind.parts?.(item, asked, form) ?? { settings: form }),
        facts: own && card('facts', 'Facts', facts([...own, ...always])),
      })}${deleteCard(pathOf(item), noun, kind.nameOf(item), ...kind.farewell)}`,
      ...(kind.scripts && { scripts: kind.scripts }),
      asked,
    });
  };
  const one = `${path}/:${idName}`;
  mountPage(
    app,
    one,
    page,
    kind.fields && {
      form: 'settings',
      change(request, sent) {
        const item = itemOf(request);
        const body = bodyOf(kind.fields?.(item) ?? newForm, sent);
        kind.calls(item).update(idsOf(item), body, viewOf(context, request));
        return `${pathOf(item)}?done=${noun}-saved`;
      },
    },
  );
  const mountForm: MountForm<T> = (below, change, form) =>
    mountPage(app, `${one}/${below}`, undefined, {
      ...(form !== undefined && { form }),
      again: page,
      async change(request, sent) {
        const item = itemOf(request);
        const done = await change(item, { request, sent, view: viewOf(context, request) });
        const isWord = typeof done === 'string' && !done.startsWith('/');
        return isWord ? `${pathOf(item)}?done=${done}` : done;
      },
    });
  mountForm('delete', (item, { request }) => {
    kind.calls(item).remove(idsOf(item));
    return wantsJson(request) ? undefined : `${path}?done=${noun}-deleted`;
  });
  return mountForm;
}

/** The choice of a site, which a form asks for when the account has several. */
export function siteField(siteIds: readonly string[]): SetFields {
  return { site: { schema: z.enum([...siteIds]), default: siteIds[0] ?? '', says: 'The site.' } };
}

/** The site that a form says. @throws HttpError 400 */
export function siteOf(context: Pick<EmulatorContext, 'seeds'>, sent: FormBody): string {
  return requireSite(context, sent.text('site'));
}

/** @throws HttpError 400 */
export function requireSite({ seeds }: Pick<EmulatorContext, 'seeds'>, site: string): string {
  if (seeds.siteIds.includes(site)) return site;
  throw new HttpError(400, { code: 'invalid_body', description: 'The account has no such site.' });
}

function bodyOf({ metadata, relationships }: FormFields, sent: FormBody): object {
  return {
    metadata: readFields(metadata, sent),
    ...(relationships && { relationships: readFields(relationships, sent) }),
  };
}

/** The id below a name in a list, with the site where the account has several. */
export function idLine(
  { seeds }: Pick<EmulatorContext, 'seeds'>,
  { id, siteId }: Pick<Item, 'id' | 'siteId'>,
): Content {
  const isOneOfSeveral = siteId !== undefined && seeds.siteIds.length > 1;
  return html`<span class="sub"><code>${id}</code>${isOneOfSeveral && html` · site <code>${siteId}</code>`}</span>`;
}

function titleCase(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
