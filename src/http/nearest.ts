export { nearest } from './faults';
