// Package vswitchd makes a switch look like Open vSwitch to its tools. It is the controller of
// a switch in another process. It serves the database, OpenFlow and control commands on the
// sockets where ovs-vsctl, ovs-ofctl, ovs-appctl and controllers look for them.
//
//	vswitchd.go         the process
//	bridges.go          the bridge of the database's rows
//	bridgeports.go      its ports
//	tunnelports.go      its tunnels
//	tunneladdresses.go  the addresses at which tunnels receive
//	recentchanges.go    changes that a killed switch may have lost
//	portmarks.go        packet marks on its internal ports
//	connections.go      OpenFlow connections with controllers
//	commands.go         commands of ovs-appctl
package vswitchd
