package appctl

import (
	"math"
	"slices"

	"github.com/antrail/antrail/vswitchd/unixctl"
)

// Commands are the commands of ovs-appctl that read the switch, or flush its addresses and
// connections.
func (s *Switch) Commands() []unixctl.Command {
	return slices.Concat(s.absent(), s.otherLists(), refused(), []unixctl.Command{
		{Name: "ofproto/list", Run: s.listBridges},
		{Name: "ofproto/trace", Usage: traceUsage, Min: 1, Max: math.MaxInt, Run: s.runTrace},
		{Name: "bridge/dump-flows", Usage: "[--offload-stats] bridge", Min: 1, Max: 2, Run: s.dumpFlows},
		{Name: "fdb/show", Usage: "bridge", Min: 1, Max: 1, Run: s.showLearned},
		{Name: "fdb/flush", Usage: "[bridge]", Max: 1, Run: s.flushLearned},
		{Name: "dpif/dump-dps", Run: s.listDatapaths},
		{Name: "dpif/show", Run: s.showPorts},
		{Name: "dpif/show-dp-features", Usage: "bridge", Min: 1, Max: 1, Run: s.showFeatures},
		{Name: "dpctl/flush-conntrack", Usage: "[dp] [zone=N] [ct-orig-tuple] [ct-reply-tuple]", Max: 4, Run: s.flushConnections},
		{Name: "dpctl/ct-get-limits", Usage: "[dp] [zone=N1[,N2]...]", Max: math.MaxInt, Run: s.showLimits},
		{Name: "dpctl/ipf-get-status", Usage: "[dp]", Max: 2, Run: s.showFragments},
		{Name: "dpctl/ct-get-nconns", Usage: "[dp]", Max: 1, Run: s.countConnections},
		{Name: "dpctl/ct-get-maxconns", Usage: "[dp]", Max: 1, Run: s.mostConnections},
		{Name: "dpctl/ct-stats-show", Usage: "[dp] [zone=N]", Max: 2, Run: s.showConnectionStats},
		{Name: "dpctl/dump-conntrack", Usage: "[-m] [-s] [dp] [zone=N]", Max: 4, Run: s.dumpConnections},
		{Name: "dpctl/dump-dps", Run: nothing(datapath + "\n")},
		{Name: "dpctl/list-commands", Run: s.listDatapathCommands},
		{Name: "dpctl/show", Usage: "[-s] [dp...]", Max: 2, Run: s.showDatapath},
	})
}
