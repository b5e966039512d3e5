// Command antrail-cni is the CNI plugin of antrail: a container runtime calls it
// for each pod, and it asks the Node's agent over its unix socket. There is no
// logic here.
//
// By hand it prints its name and the versions of the specification that it
// speaks. An example of a network configuration is deploy/cni/10-antrail.conflist.
package main

import (
	"github.com/antrail/antrail/cni"
	"github.com/antrail/antrail/cni/plugin"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"
)

func main() {
	skel.PluginMainFuncs(plugin.Verbs(), version.All, cni.Type+", the CNI plugin of antrail; the agent does the work")
}
