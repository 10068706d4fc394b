// The engine aedes: what every engine owes its users, and what it makes of clients, rights and limits that aedes does not know of.
import { brokerContract } from '../contract/broker.ts';
import { openAedesRoom } from './aedesroom.ts';

brokerContract('the engine aedes', openAedesRoom);
