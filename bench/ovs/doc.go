// Package ovs runs a private Open vSwitch with its userspace datapath, as a contender.
//
//	programs.go  whether it is installed, and which version
//	switch.go    a running switch
//	command.go   commands to it
//	ovsload.go   its ports and its entries
//	pollingswitch.go what its polling threads count
package ovs
