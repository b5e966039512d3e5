package agent

import (
	"fmt"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/host/preflight"
)

// What is wrong with the manifests that a configuration names, before an agent is
// started with it.

// mostWrong is how many objects are told one by one.
const mostWrong = 20

// ManifestLines look at the objects of the configuration's manifests, and at what the
// Node would make of them; nil where it names none.
func ManifestLines(c *config.Config) (all []preflight.Line) {
	if c.Manifests == "" {
		return nil
	}
	wrong := 0
	cluster, err := pipeline.Manifests{Path: c.Manifests}.Cluster(func(p manifest.Problem) {
		if wrong++; wrong <= mostWrong {
			all = append(all, preflight.Line{State: preflight.Fail, Check: "objects", Found: p.Error(), Remedy: "until that is right, the agent runs without this object"})
		}
	})
	var objects *control.Reconciler
	if err == nil {
		_, objects, err = control.Offline(cluster, c.NodeName)
	}
	if wrong > mostWrong {
		all = append(all, preflight.Line{State: preflight.Fail, Check: "objects", Found: fmt.Sprintf("%d more are wrong", wrong-mostWrong), Remedy: "mend those above first"})
	}
	if err != nil {
		return append(all, preflight.Line{State: preflight.Fail, Check: "objects", Found: err.Error(),
			Remedy: "manifests of the configuration is a file or directory, relative to the configuration's own, with the NodeConfig of its nodeName"})
	}
	return append(all, objectsLine(objects.Statuses()))
}
