// Package appctl answers the commands of ovs-appctl(8) that ask what a switch behind a door does.
//
//	commands.go        the commands
//	listings.go        those that list entries, ports and addresses, and forget these
//	lists.go           those that list what antrail has in another form
//	absent.go          those about what the switch does not have
//	refusals.go        those that are refused, and why
//	datapath.go        dpif/show-dp-features: what antrail's datapath does
//	connections.go     dpctl/…: tracked connections
//	ofprototrace.go    ofproto/trace: its arguments, and the packet
//	tracepasses.go     the steps of a walk, cut into passes
//	traceactions.go    what one action shows
//	tracetree.go       the lines of a pass
//	flowtext.go        a packet's flow in one line
//	datapathactions.go what leaves, as actions of a datapath
//	switch.go          the switch that all of them ask
//
// A trace has no line "Megaflow", because antrail's cache has other masks than that of Open
// vSwitch. A trace is always dry: with -generate or a packet, too, nothing is learned.
package appctl
