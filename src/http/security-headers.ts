export { securityHeaders } from './shell';
