// Package config is the agent's configuration: a YAML file, its defaults and its checks. It
// also derives what follows from a configuration alone.
//
//	config.go     the whole file, its defaults and checks
//	faults.go     the list of errors, checks and defaults that several sections share
//	errorplace.go the key of a value that cannot be read
//	kubernetes.go the section about the Kubernetes API, and the NodeConfig that it makes
//	program.go    the Node that a configuration describes to a program; programobjects.go, its
//	              Services and policies
//	cardmode.go   how program uplink uses the Node's card
//	facts.go      facts of a Node that only the API has, stored in a file
//	fits.go       whether objects describe the same Node
//	nodetype.go   machines without pods: keys that they do not have
//	tunnel.go     the port to the other Nodes, the MTU that it leaves, the encapsulation mode
//	drivers.go    drivers of pods' ports
//	settings.go   sections that are settings of the switch: cards, connections
//	awake.go      whether idle processors stay awake; the words of offload
//	cni.go        files of the container runtime
//	serving.go    metrics and the page, over TCP
//	drops.go      dropped packets: how many are kept
//	log.go        the agent's log, which bounds repeated lines; the audit log of policies
//	statefiles.go paths of the agent's files
package config
