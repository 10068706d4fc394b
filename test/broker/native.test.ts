import { brokerContract } from '../contract/broker.ts';
import { openRoom } from './room.ts';

brokerContract('the native engine', openRoom);
