import type { Seeded } from './operation';

/** A body that makes or changes a resource. */
interface Body {
  readonly metadata?: object;
  readonly upload?: object;
  readonly relationships?: object;
}

interface ResourceExample {
  /** Of the answers. */
  readonly id: string;
  /** The bodies that make one, by name. The answers have the metadata of the first. */
  readonly create?: Readonly<Record<string, { readonly summary: string; readonly body: Body }>>;
  readonly update?: { readonly summary: string; readonly body: Body };
  /** What lists are filtered by. */
  readonly q: string;
  /** What the platform sets. */
  readonly shown: object;
  /** What only the answer of a create call has, by its name. */
  readonly once?: Readonly<Record<string, object>>;
  /** What is shown where only one was made. */
  readonly atFirst?: object;
  readonly relationships?: object;
}

/** What stands for an id that the reader has: the variable of the same name stands for it in paths. */
const MEDIA_ID = 'MEDIA_ID';

const UPLOADS = {
  direct: {
    upload_link: 'http://127.0.0.1:8080/uploads/uP10aDid?token=Jb9sMDUtWqTlLRfXAhiIbOnQFcLxH0zh1CYG4kcT',
  },
  multipart: { upload_id: 'uP10aDid', upload_token: 'Jb9sMDUtWqTlLRfXAhiIbOnQFcLxH0zh1CYG4kcT' },
};
const READY = { status: 'ready', error_message: null };
const CREATED = { status: 'created', error_message: null };

const direct = (more: object = {}) => ({ method: 'direct', ...more });

/** The examples of a resource, by its type. */
export function exampleOf(type: string, { siteId }: Seeded): ResourceExample {
  const examples: Readonly<Record<string, ResourceExample>> = {
    media: {
      id: 'Xw7a9bPq',
      create: {
        direct: {
          summary: 'Upload a file',
          body: {
            upload: direct({ mime_type: 'video/mp4' }),
            metadata: { title: 'Town hall', tags: ['news'], custom_params: { show: 'evening' } },
          },
        },
        multipart: {
          summary: 'Upload a large file in parts',
          body: { upload: { method: 'multipart' }, metadata: { title: 'The long night' } },
        },
        fetch: {
          summary: 'Have a file fetched',
          body: {
            upload: { method: 'fetch', download_url: 'http://127.0.0.1:3000/film.mp4' },
            metadata: { title: 'A film' },
          },
        },
        external: {
          summary: 'Leave the content where it is',
          body: {
            upload: {
              method: 'external',
              source_url: 'https://cdn.example.com/film.m3u8',
              mime_type: 'application/vnd.apple.mpegurl',
            },
            metadata: { title: 'A film elsewhere', publish_end_date: '2040-01-31T12:00:00Z' },
          },
        },
      },
      update: {
        summary: 'Change title and tags',
        body: { metadata: { title: 'Town hall, the whole evening', tags: ['news', 'politics'] } },
      },
      q: 'tags: news AND title: town*',
      shown: {
        ...READY,
        media_type: 'video',
        hosting_type: 'hosted',
        mime_type: 'video/mp4',
        duration: 62.5,
        trim_in_point: null,
        trim_out_point: null,
        external_id: null,
        source_url: null,
      },
      atFirst: { ...CREATED, duration: 0 },
      once: UPLOADS,
    },
    original: {
      id: 'or1g1nal',
      create: {
        direct: {
          summary: 'Add a file in another language',
          body: { upload: direct(), metadata: { name: 'Dubbed', language: 'German', language_code: 'de' } },
        },
      },
      update: { summary: 'Rename it', body: { metadata: { name: 'Dubbed, corrected' } } },
      q: 'language_code: de',
      shown: {
        ...READY,
        container_format: 'mp4',
        duration: 62.5,
        size: 1_048_576,
        md5: '9e107d9d372bb6826bd81d3542a419d6',
        includes: { video_track: { or1g1nal: { width: 1280, height: 720 } } },
      },
      atFirst: { ...CREATED, container_format: null, duration: 0, size: 0, md5: null, includes: {} },
      once: UPLOADS,
    },
    media_rendition: {
      id: 'r3nd1t10',
      create: {
        template: {
          summary: 'Make a rendition of a template',
          body: { relationships: { media_rendition_template: { id: '480p' } } },
        },
      },
      q: 'height: [270 TO 720]',
      shown: {
        ...READY,
        media_type: 'video',
        delivery_url: 'http://127.0.0.1:8080/videos/Xw7a9bPq-r3nd1t10.mp4',
        filesize: 1_048_576,
        width: 1280,
        height: 720,
      },
      atFirst: { status: 'processing', delivery_url: null, filesize: 0 },
      relationships: { media_rendition_template: { id: '480p' } },
    },
    text_track: {
      id: 'tr4ckAbc',
      create: {
        direct: {
          summary: 'Upload captions',
          body: {
            upload: direct({ file_format: 'vtt', auto_publish: true }),
            metadata: { label: 'English', srclang: 'en', track_kind: 'captions' },
          },
        },
      },
      update: { summary: 'Rename it', body: { metadata: { label: 'English (UK)', position: 1 } } },
      q: 'track_kind: captions',
      shown: {
        ...READY,
        track_kind: 'captions',
        published: true,
        delivery_url: 'http://127.0.0.1:8080/tracks/tr4ckAbc.vtt',
      },
      atFirst: { ...CREATED, published: false, delivery_url: null },
      once: UPLOADS,
    },
    thumbnail: {
      id: 'thumbn41',
      create: {
        direct: {
          summary: 'Upload a poster',
          body: {
            upload: direct({ mime_type: 'image/png' }),
            relationships: { media: [{ id: MEDIA_ID, is_poster: true }] },
          },
        },
        position: {
          summary: 'Take a picture out of the video',
          body: {
            upload: { source_type: 'video_position', source_media_id: MEDIA_ID, video_position: 12.5 },
            relationships: { media: [{ id: MEDIA_ID }] },
          },
        },
      },
      update: {
        summary: 'Make it the poster',
        body: { relationships: { media: [{ id: MEDIA_ID, is_poster: true }] } },
      },
      q: 'media_id: MEDIA_ID',
      shown: {
        ...READY,
        thumbnail_type: 'static',
        source_type: 'custom_upload',
        delivery_url: 'http://127.0.0.1:8080/thumbnails/thumbn41',
      },
      atFirst: { ...CREATED, delivery_url: null },
      once: UPLOADS,
      relationships: { media: [{ id: 'Xw7a9bPq', is_poster: true }] },
    },
    player: {
      id: 'p1ayerAb',
      create: {
        plain: {
          summary: 'A player with options',
          body: {
            metadata: {
              name: 'News page',
              setup_config: { autostart: 'viewable', playbackRateControls: true },
            },
          },
        },
      },
      update: {
        summary: 'Change its options, all of them',
        body: { metadata: { setup_config: { autostart: false } } },
      },
      q: 'name: news',
      shown: {},
    },
    import: {
      id: '1mportAb',
      create: {
        feed: {
          summary: 'Import a feed',
          body: { metadata: { url: 'http://127.0.0.1:3000/feed.xml', title: 'Partner', state: 'paused' } },
        },
      },
      update: { summary: 'Stop it', body: { metadata: { state: 'inactive' } } },
      q: 'state: paused',
      shown: { total_items_ingested: 0, last_import: null, error_message: null },
    },
    channel: {
      id: 'ch4nne1A',
      create: {
        manual: {
          summary: 'A channel whose events are published by hand',
          body: { metadata: { title: 'Town hall', publishing_mode: 'manual', tags: ['news'] } },
        },
        simulcast: {
          summary: 'A channel that is also sent elsewhere',
          body: {
            metadata: {
              title: 'Concert',
              latency: 'default',
              reconnect_window: 120,
              simulcast_targets: [
                { stream_key: 'their-key', stream_url: 'rtmps://live.example.com/in', title: 'Their place' },
              ],
            },
          },
        },
      },
      update: {
        summary: 'Change its title',
        body: { metadata: { title: 'Town hall, second evening' } },
      },
      q: 'status: idle AND tags: news',
      shown: {
        status: 'active',
        enabled: true,
        stream_key: 'dc0ab1VfR1nZ8kQsy3LhXm2TuWp9EoGtJ5iKq7Yd',
        preview_url: ['http://127.0.0.1:8080/live/previews/m3dO7sUvJkq2Lx.m3u8'],
        recent_events: [{ media_id: 'ev3ntAbc', status: 'active' }],
      },
      atFirst: { status: 'creating', preview_url: [], recent_events: [] },
    },
    event: {
      id: 'ev3ntAbc',
      q: 'status: active',
      shown: {
        media_id: 'ev3ntAbc',
        status: 'idle',
        published_at: '2030-01-01T12:00:05.000000+00:00',
        ended_at: '2030-01-01T13:00:00.000000+00:00',
        master_access: { status: 'unavailable', expiration: null },
      },
    },
    webhook: {
      id: 'w3bh00kA',
      create: {
        live: {
          summary: 'Be told of live events',
          body: {
            metadata: {
              name: 'Newsroom',
              description: 'Tells the newsroom what is on the air.',
              webhook_url: 'http://127.0.0.1:3000/hook',
              events: ['channel_active', 'channel_idle', 'media_available'],
              site_ids: [siteId],
            },
          },
        },
      },
      update: { summary: 'Be told of one event only', body: { metadata: { events: ['channel_active'] } } },
      q: 'events: channel_active',
      shown: {},
      once: { live: { secret: 'SBAaF4Obd1y9zF7Y2hBvDr6w8NWxMx0LqRf3TgUk' } },
    },
  };
  return examples[type] ?? playlistExample(type);
}

const PLAYLISTS: Readonly<Record<string, object>> = {
  manual_playlist: { media_filter: { include: { values: [MEDIA_ID] } } },
  dynamic_playlist: {
    media_filter: { include: { tags: { match: 'any', values: ['news'] } } },
    sort: 'title:asc',
  },
  trending_playlist: { media_limit: 5 },
  article_matching_playlist: { media_limit: 3 },
  search_playlist: { query: 'town hall' },
  recommendations_playlist: { media_limit: 20 },
};

function playlistExample(type: string): ResourceExample {
  const isTyped = type !== 'playlist';
  const metadata = { title: 'Best of the week', ...PLAYLISTS[type] };
  return {
    id: 'p1ay1ist',
    ...(isTyped && {
      create: { plain: { summary: `A ${type.replaceAll('_', ' ')}`, body: { metadata } } },
      update: { summary: 'Rename it', body: { metadata: { title: 'Best of the month' } } },
    }),
    q: 'playlist_type: manual_playlist',
    shown: { playlist_type: isTyped ? type : 'manual_playlist' },
  };
}
