import * as z from 'zod';
import type { Clock } from '../clock';
import type { EmulatorDependencies } from '../dependencies';
import type { ItemStore } from '../listing/item-store';
import type { Uploads } from '../uploads/uploads';
import type { Notify } from '../webhooks/notification';
import type { GivenOf, SetFields, ShownFields, ValuesOf } from './fields';

export const VERBS = {
  list: { method: 'GET', path: 'collection', status: 200 },
  create: { method: 'POST', path: 'collection', status: 201 },
  read: { method: 'GET', path: 'one', status: 200 },
  update: { method: 'PATCH', path: 'one', status: 200 },
  delete: { method: 'DELETE', path: 'one', status: 204 },
} as const;
export type Verb = keyof typeof VERBS;

/** A route below a resource, or below a site, that is neither of its verbs. */
export interface Action {
  readonly methods: readonly ('GET' | 'PUT' | 'POST')[];
  readonly path: string;
  readonly title: string;
  readonly says: string;
  readonly status: 200 | 202 | 204;
  /** Without it no body is read. */
  readonly body?: z.ZodObject;
  /** Its body has the resource's own `upload`. */
  readonly upload?: true;
  /** Other parameters are left alone, as in lists. */
  readonly query?: z.ZodObject;
  /** Where that is neither empty nor the resource itself. */
  readonly answer?: z.ZodObject;
  readonly refusals?: readonly Refusal[];
}

/** Whether a call changes something, which a Viewer may not. */
export function isChange(method: string, path: string): boolean {
  return method !== 'GET' && !path.endsWith('/query_usage');
}

/** The reason to refuse a valid request for an existing resource. `when` is a sentence. */
type Refusal = readonly [status: 404 | 409, code: string, when: string];

/** One resource of the management API, as data: routes, validation, description and pages are made from it. */
export interface Resource {
  readonly type: string;
  /** The name of the array in a list. */
  readonly plural: string;
  /** Another name under which a list has the array once more, as a released client reads it. */
  readonly alsoListedAs?: string;
  readonly noun: string;
  readonly says: string;
  readonly collection: string;
  /** The path of one, as Express writes it. Its last parameter is the id. */
  readonly one: string;
  readonly verbs: readonly Verb[];
  readonly metadata: SetFields;
  /** Where the content comes from; create calls alone have it. */
  readonly upload?: SetFields;
  readonly relationships?: SetFields;
  readonly shown: ShownFields;
  /** The other fields of its items, which a saved state has, too. A new item has the defaults. */
  readonly kept?: z.ZodRawShape;
  readonly actions?: Readonly<Record<string, Action>>;
  readonly refusals?: { readonly [V in Verb]?: readonly Refusal[] };
}

/** The names, paths and verbs of a resource: a `text_track` is listed among `text_tracks`. */
export function named<const T extends string>(type: T, below: string, idName: string) {
  const collection = `${below}/${type}s`;
  const noun = type.replaceAll('_', ' ');
  const verbs = ['list', 'create', 'read', 'update', 'delete'] as const;
  return { type, plural: `${type}s`, noun, collection, one: `${collection}/:${idName}`, verbs };
}

export function putAction(path: string, title: string, says: string, ...refusals: readonly Refusal[]) {
  return { methods: ['PUT'], path, title, says, status: 204, refusals } as const;
}

type FieldsOr<F> = F extends SetFields ? F : Record<never, never>;

export type MetadataOf<R extends Resource> = ValuesOf<R['metadata']>;

export interface BodyOf<R extends Resource> {
  readonly metadata: GivenOf<R['metadata']>;
  readonly upload: GivenOf<FieldsOr<R['upload']>>;
  readonly relationships: GivenOf<FieldsOr<R['relationships']>>;
}

type NewOf<R extends Resource> = Omit<BodyOf<R>, 'metadata'> & { readonly metadata: MetadataOf<R> };

export interface Kept<R extends Resource> {
  readonly id: string;
  readonly created: Date;
  lastModified: Date;
  metadata: MetadataOf<R>;
}

type FormOf<R extends Resource> = R extends { readonly kept: infer Shape extends z.ZodRawShape }
  ? z.ZodObject<Shape>
  : z.ZodType<object, object>;

export type ItemOf<R extends Resource> = Kept<R> & z.output<FormOf<R>>;

export type Stored<R extends Resource> = ItemOf<R> & { readonly siteId: string };

export type GivenItem<R extends Resource> = Omit<Kept<R>, 'lastModified'> & z.input<FormOf<R>>;

/** An item with these fields, and the defaults of the others. */
export function itemOf<R extends Resource, const Given extends GivenItem<R>>(
  { kept = {} }: R,
  given: Given,
): ItemOf<R> & Given {
  const first = Object.entries(kept).flatMap(([name, form]) =>
    form instanceof z.ZodDefault ? [[name, form.def.defaultValue] as const] : [],
  );
  return { lastModified: given.created, ...Object.fromEntries(first), ...given } as ItemOf<R> & Given;
}

export function newItem<R extends Resource, const Given extends Omit<GivenItem<R>, 'id' | 'created'>>(
  resource: R,
  { clock, newResourceId }: Pick<Platform, 'clock' | 'newResourceId'>,
  given: Given,
): ItemOf<R> & Given {
  const made = { ...given, id: newResourceId(), created: clock.now() };
  return itemOf(resource, made as Given & GivenItem<R>);
}

/** The form of a resource depends on the caller and the time. */
export interface View {
  /** Where the platform is reached, as the start of addresses in an answer. */
  readonly origin: string;
  /** By the platform's clock. */
  readonly now: () => Date;
  /** Whether the caller reaches a site. Without it, all are reached. */
  readonly reaches?: (siteId: string) => boolean;
}

export type PathIds = Readonly<Record<string, string>>;

export interface Behaviour<R extends Resource, Item extends Kept<R>> {
  readonly store: ItemStore<Item>;
  /** @throws HttpError 404 when the parent of the items does not exist. */
  readonly parent?: (ids: PathIds) => unknown;
  /** Which items of the store there are for the caller, or for this resource. */
  readonly sees?: (item: Item, view: View) => boolean;
  /** `metadata` has every field. */
  readonly create?: (ids: PathIds, body: NewOf<R>, view: View) => Item | Promise<Item>;
  /** Without it, the metadata and the time of the change are set. @param metadata the new one. `body` is the call's. */
  readonly update?: (item: Item, metadata: MetadataOf<R>, body: BodyOf<R>, view: View) => void;
  /** Without it, the store loses the item. */
  readonly remove?: (item: Item) => void;
  /**
   * The values of the fields that the platform sets, but for those that the item has itself: `media_type` as
   * its `mediaType`. `undefined` leaves one out.
   */
  readonly shown?: { readonly [Name in keyof R['shown']]?: (item: Item, view: View) => unknown };
  readonly relationships?: (item: Item) => object;
  readonly actions?: {
    readonly [Name in keyof NonNullable<R['actions']>]: (
      item: Item,
      call: ActionCall,
    ) => Done | Promise<Done>;
  };
}

/** How a content is to come, as a call gives it: its fields fit together. */
export interface GivenUpload {
  readonly method?: string | null | undefined;
  readonly mime_type?: string | null | undefined;
  readonly download_url?: string | null | undefined;
  readonly source_url?: string | null | undefined;
  readonly trim_in_point?: string | null | undefined;
  readonly trim_out_point?: string | null | undefined;
}

/** Validated by the fields of the action; `upload` is empty if it takes none. */
export interface ActionCall {
  readonly upload: GivenUpload;
  readonly query: Readonly<Record<string, unknown>>;
  readonly view: View;
}

/** `item`: the answer is the item itself, as create answers have it. An object is the answer; `void` is none. */
type Done = 'item' | object | undefined;

/** The state of the platform, as the function that makes it declares it. */
export interface LibraryState extends Readonly<Record<never, never>> {}

/** The services that resources use; files declare their additions. */
export interface Platform extends Pick<EmulatorDependencies, 'newResourceId' | 'newSecret'> {
  readonly state: LibraryState;
  readonly clock: Clock;
  readonly notify: Notify;
  readonly uploads: Uploads;
}
