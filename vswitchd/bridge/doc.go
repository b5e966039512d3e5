// Package bridge configures a switch by the rows of the database Open_vSwitch, and writes the
// results back, as the daemon ovs-vswitchd does.
//
//   - reconciler.go: the loop: read rows, change the switch, write back.
//   - wanted.go: the bridges and ports that the rows ask for.
//   - installing.go: the bridges and ports to remove, add and change.
//   - numbers.go: OpenFlow port numbers.
//   - writeback.go: the columns with the results.
//   - statusquo.go: link state, addresses and counters of ports, in columns.
//   - switch.go: the switch, which the caller implements.
//
// Rules:
//
//  1. Clients wait until Open_vSwitch.cur_cfg reaches next_cfg and read ofport and error then.
//     All of them are written in one transaction, after the switch was changed.
//  2. A port that the switch refuses has ofport -1 and the reason in the column error. It is
//     tried again in each round.
//  3. Configuration that antrail lacks is refused. Ports of a bond, ports with vlan_mode=dot1q-tunnel
//     and protected ports get an error. The column status of a bridge names the rest, such as
//     mirrors, QoS and policing.
//  4. One goroutine runs the loop and calls the switch. The database's lock is not held then.
package bridge
