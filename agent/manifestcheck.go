package agent

import (
	"fmt"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/host/preflight"
)

// The check of a configuration's manifests, before an agent starts with it.

// mostWrong is how many objects are reported one by one.
const mostWrong = 20

// ManifestLines check the objects of the configuration's manifests, and what this Node would
// make of them. The result is nil if the configuration names no manifests.
func ManifestLines(c *config.Config) (all []preflight.Line) {
	if c.Manifests == "" {
		return nil
	}
	wrong := 0
	cluster, err := pipeline.Manifests{Path: c.Manifests}.Cluster(func(p manifest.Problem) {
		if wrong++; wrong <= mostWrong {
			all = append(all, preflight.Line{State: preflight.Fail, Check: "objects", Found: p.Error(), Remedy: "correct it; until then the agent runs without this object"})
		}
	})
	var objects *control.Reconciler
	if err == nil {
		_, objects, err = control.Offline(cluster, c.NodeName)
	}
	if wrong > mostWrong {
		all = append(all, preflight.Line{State: preflight.Fail, Check: "objects", Found: fmt.Sprintf("%d more are wrong", wrong-mostWrong), Remedy: "correct those above first"})
	}
	if err != nil {
		return append(all, preflight.Line{State: preflight.Fail, Check: "objects", Found: err.Error(),
			Remedy: "set manifests in the configuration to a file or directory, relative to the configuration's own, that has the NodeConfig of nodeName"})
	}
	return append(all, objectsLine(objects.Statuses()))
}
