// Package vswitchd makes a switch look like Open vSwitch to its tools. It is the controller of
// a switch in another process. It serves the database, OpenFlow and control commands on the
// sockets where ovs-vsctl, ovs-ofctl, ovs-appctl and controllers look for them.
//
//	vswitchd.go         the process
//	bridges.go          the bridge that rows of the database ask for, as the switch
//	bridgeports.go      its ports
//	tunnelports.go      its tunnels
//	tunneladdresses.go  where they receive
//	recentchanges.go    what a killed switch may have lost
//	portmarks.go        packet marks on its internal ports
//	connections.go      OpenFlow: where controllers connect, or are connected to
//	commands.go         commands of ovs-appctl
package vswitchd
