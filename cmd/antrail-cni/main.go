// Command antrail-cni is the CNI plugin of antrail. A container runtime calls it for each
// pod. It sends the request to the Node's agent over a unix socket, and decides nothing itself.
//
// Called by hand, it prints its name and the supported versions of the specification; with
// --version, its build. deploy/cni/10-antrail.conflist is an example configuration.
package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/antrail/antrail/cni"
	"github.com/antrail/antrail/cni/plugin"
	"github.com/antrail/antrail/internal/version"
	"github.com/containernetworking/cni/pkg/skel"
	specification "github.com/containernetworking/cni/pkg/version"
)

func main() {
	if slices.Equal(os.Args[1:], []string{"--version"}) || slices.Equal(os.Args[1:], []string{"version"}) {
		fmt.Println(version.Of().Line(cni.Type))
		return
	}
	skel.PluginMainFuncs(plugin.Verbs(), specification.All, cni.Type+", the CNI plugin of antrail; the agent does the work")
}
