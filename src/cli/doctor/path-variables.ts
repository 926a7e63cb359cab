import { isAbsolute, normalize } from 'node:path';
import { type Checked, fault } from '../../drm/bytes';

/** The key folder of an application that names none. */
export const DEFAULT_KEY_DIR = `\${com.wowza.wms.context.VHostConfigHome}/keys`;
/** The same for its content. */
export const DEFAULT_STORAGE_DIR = `\${com.wowza.wms.context.VHostConfigHome}/content`;

/**
 * Puts the packager's variables into a path, for an application of the default virtual host, whose folder is the
 * installation itself.
 */
export function resolvePath(text: string, packager: string, application: string): Checked<string> {
  const values: Readonly<Record<string, string>> = {
    'com.wowza.wms.AppHome': packager,
    'com.wowza.wms.ConfigHome': packager,
    'com.wowza.wms.context.VHost': '_defaultVHost_',
    'com.wowza.wms.context.VHostConfigHome': packager,
    'com.wowza.wms.context.Application': application,
    'com.wowza.wms.context.ApplicationInstance': '_definst_',
  };
  const unknown: string[] = [];
  const path = text.replaceAll(/\$\{([^}]*)\}/g, (variable, name: string) => {
    const value = values[name];
    if (value === undefined) unknown.push(variable);
    return value ?? '';
  });
  if (unknown.length > 0)
    return fault(
      'unknown_variable',
      `holds ${unknown.join(', ')}, which is no variable of an Application.xml`,
    );
  if (!isAbsolute(path))
    return fault(
      'relative_path',
      'is a relative path, which depends on the folder the packager was started in',
    );
  return { ok: true, value: normalize(path).replace(/(?<=.)\/$/, '') };
}
