import type { Express } from 'express';
import * as z from 'zod';
import { type Content, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import { capital, type SetFields } from '../resources/fields';
import type { View } from '../resources/resource';
import { type ResourceCalls, viewOf } from '../resources/resource-calls';
import { card, confirmedAction, copyable, type Fact, facts, time } from './elements';
import { type Asked, absent, formCard, invalid, type PageRequest, refusedFirst, wantsJson } from './forms';
import { type FormBody, formOf, readFields } from './inputs';
import { type Answer, mountPage, type Page } from './layout';
import { type List, listOf } from './list';

interface Item {
  readonly id: string;
  readonly siteId?: string;
  readonly created: Date;
  readonly lastModified: Date;
  readonly metadata: object;
  readonly relationships?: object;
}

interface FormFields {
  readonly metadata: SetFields;
  readonly relationships?: SetFields;
}

/** The list, the form and the page of a resource, as data. */
export interface ResourcePages<T extends Item> extends Omit<List<T>, 'path' | 'caption' | 'empty'> {
  readonly intro: string;
  readonly empty?: Content;
  readonly store: { all(): readonly T[]; find(id: string): T | undefined };
  readonly nameOf: (item: T) => string;
  readonly nameCell?: (item: T) => Content;
  readonly scripts?: readonly ('upload' | 'order')[];
  /** Of an item, or of the one that a form makes. */
  readonly calls: (of: T | FormBody) => ResourceCalls;
  readonly newForm: FormFields & {
    readonly shown?: SetFields;
    readonly more?: Readonly<Record<string, SetFields>>;
    readonly below?: Content;
    readonly above?: Content;
    readonly hasSite?: false;
    readonly body?: (sent: FormBody) => object;
    /** Notices the new item, and answers the script that made it. */
    readonly made?: (id: string, origin: string) => object | undefined;
  };
  readonly fields: (item: T) => FormFields;
  readonly introOf?: (item: T) => string;
  readonly aside?: (item: T) => Content;
  /** The parts of the page by names, with the form at its place. */
  readonly parts?: (item: T, asked: Asked, form: Content) => Readonly<Record<string, Content>>;
  readonly facts?: (item: T, origin: string) => readonly Fact[];
  /** The parts that are deleted with the item, and other consequences. */
  readonly farewell: readonly [says: string, consequence?: string];
}

export interface Sent {
  readonly request: PageRequest;
  readonly sent: FormBody;
  readonly view: View;
}

/** Changes an item. @returns the change, as `picture-added`, where its page reports it; otherwise see `mountPage`. */
type Change<T> = (item: T, sent: Sent) => Answer | Promise<Answer>;

/** Routes a form below the page of an item. @param form the id of the form; without it, a refusal has its own page. */
export type MountForm<T> = (below: string, change: Change<T>, form?: string) => void;

/** Mounts the list, the form and the page of a resource. @returns mounts its other forms. */
export function mountResourcePages<T extends Item>(
  app: Express,
  context: EmulatorContext,
  kind: ResourcePages<T>,
): MountForm<T> {
  const { newForm, nameOf, store, scripts = [] } = kind;
  const { one: noun, many: plural } = kind.noun;
  const path = `/dashboard/${plural}`;
  const site = newForm.hasSite === false ? {} : siteField(context.seeds.siteIds);
  const pathOf = ({ id }: { readonly id: string }) => `${path}/${id}`;
  const nameCell = (item: T) =>
    kind.nameCell?.(item) ??
    html`<a class="name" href="${pathOf(item)}" dir="auto">${nameOf(item)}</a>${idLine(context, item)}`;
  const list: List<T> = {
    empty: html`<p>There is no ${noun} yet. Make one with the form, or with the management API.</p>`,
    ...kind,
    path,
    caption: capital(plural),
    columns: (query) => [[capital(noun), nameCell], ...kind.columns(query)],
  };
  const fields = { ...(newForm.shown ?? { ...newForm.metadata, ...newForm.relationships }), ...site };
  const listPage = (asked: Asked): Page => ({
    aside: html`<a class="button" href="#new">New ${noun}</a>`,
    intro: kind.intro,
    content: refusedFirst(asked, {
      list: listOf(plural, store.all(), asked.query, list),
      upload: newForm.above,
      new: formCard(asked, `New ${noun}`, {
        ...newForm,
        id: 'new',
        path,
        submit: `Create ${noun}`,
        fields,
      }),
    }),
    scripts,
  });
  mountPage(app, path, listPage, {
    form: 'new',
    async change(request, sent) {
      const siteId = newForm.hasSite === false ? '' : requireSite(context, sent.text('site'));
      const view = viewOf(context, request);
      const body = { ...bodyOf(newForm, sent), ...newForm.body?.(sent) };
      const id = String((await kind.calls(sent).create({ siteId }, body, view)).id);
      const answer = newForm.made?.(id, view.origin);
      return (wantsJson(request) && answer) || `${path}/${id}?done=${noun}-created`;
    },
  });

  const itemOf = ({ params }: PageRequest) => {
    const item = store.find(params.itemId ?? '');
    if (item) return item;
    throw absent(`There is no ${noun} with this id.`);
  };
  const idsOf = ({ siteId = '', id }: T) => ({ siteId, [`${noun}Id`]: id });
  const page = (asked: Asked): Page => {
    const item = itemOf(asked.request);
    const { metadata, relationships } = kind.fields(item);
    const changed = { ...metadata, ...relationships };
    const form = formCard(asked, 'Settings', {
      id: 'settings',
      path: pathOf(item),
      submit: `Save ${noun}`,
      fields: changed,
      filled: formOf(changed, { ...item.metadata, ...item.relationships }),
    });
    const known: readonly Fact[] = [
      ...(kind.facts?.(item, viewOf(context, asked.request).origin) ?? []),
      [`${capital(noun)} id`, copyable(`${noun} id`, item.id)],
      item.siteId !== undefined && ['Site', html`<code>${item.siteId}</code>`],
      ['Created', time(item.created)],
      ['Last change', time(item.lastModified)],
    ];
    const [says, consequence = ''] = kind.farewell;
    const sure = `${consequence} This can't be undone.`.trim();
    const button = confirmedAction(`${pathOf(item)}/delete`, 'Delete', nameOf(item), sure);
    return {
      title: nameOf(item),
      above: path,
      intro: kind.introOf?.(item),
      aside: kind.aside?.(item),
      content: html`${refusedFirst(asked, {
        ...(kind.parts?.(item, asked, form) ?? { settings: form }),
        facts: card('facts', 'Facts', facts(known)),
      })}${card('delete', `Delete this ${noun}`, html`<p>${says}</p>${button}`)}`,
      scripts,
    };
  };
  const one = `${path}/:itemId`;
  mountPage(app, one, page, {
    form: 'settings',
    change(request, sent) {
      const item = itemOf(request);
      kind.calls(item).update(idsOf(item), bodyOf(kind.fields(item), sent), viewOf(context, request));
      return `${pathOf(item)}?done=${noun}-saved`;
    },
  });
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
  mountForm('delete', (item) => {
    kind.calls(item).remove(idsOf(item));
    return `${path}?done=${noun}-deleted`;
  });
  return mountForm;
}

export function siteField(siteIds: readonly string[]): SetFields {
  return { site: { schema: z.enum([...siteIds]), default: siteIds[0] ?? '', says: 'The site.' } };
}

/** @throws HttpError 400 */
export function requireSite({ seeds }: Pick<EmulatorContext, 'seeds'>, site: string): string {
  if (seeds.siteIds.includes(site)) return site;
  throw invalid('The account has no such site.');
}

function bodyOf({ metadata, relationships }: FormFields, sent: FormBody): object {
  return {
    metadata: readFields(metadata, sent),
    ...(relationships && { relationships: readFields(relationships, sent) }),
  };
}

export function idLine(
  { seeds }: Pick<EmulatorContext, 'seeds'>,
  { id, siteId }: Pick<Item, 'id' | 'siteId'>,
): Content {
  const isOneOfSeveral = siteId !== undefined && seeds.siteIds.length > 1;
  return html`<span class="sub"><code>${id}</code>${isOneOfSeveral && html` · site <code>${siteId}</code>`}</span>`;
}
