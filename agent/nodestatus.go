package agent

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/agent/traceflow"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/kube"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/internal/version"
)

// The agent reports to the cluster: the status of policies, and of itself.

// reporter adapts the agent to kube.Reporter.
type reporter struct{ *Agent }

// runStatus writes the status until ctx ends.
func (a *Agent) runStatus(ctx context.Context) {
	if a.live.api == nil || !*a.config.Kubernetes.Status {
		return
	}
	select {
	case <-ctx.Done():
	case <-a.live.api.Synced():
		a.live.api.RunStatus(ctx, reporter{a})
	}
}

// Report implements kube.Reporter.
func (r reporter) Report() (kube.Report, bool) {
	p, known := r.live.objects.Progress()
	report := kube.Report{
		Progress: p, Version: cmp.Or(version.Of().Version, "unknown"), Subnets: r.config.PodCIDRs,
		PodNamespace: os.Getenv("POD_NAMESPACE"), PodName: os.Getenv("POD_NAME"),
	}
	for _, c := range append(r.liveness(), r.readiness()...) {
		if err := c.why(); err != nil && report.Unhealthy == nil {
			report.Unhealthy = fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return report, known
}

// Changed implements kube.Reporter.
func (r reporter) Changed() <-chan struct{} { return r.live.progressed.next() }

// Spans implements kube.Reporter.
func (r reporter) Spans() *policy.Spans { return r.live.objects.Spans() }

// traceflowConfig is the configuration for Traceflows. If the agent may not write to the API,
// they have no status there.
func (l *live) traceflowConfig(p *pipeline.Pipeline) traceflow.Config {
	c := traceflow.Config{
		Node: l.config.NodeName, Objects: l.objects, Switch: p.Switch, Changed: l.progressed.next, Clock: time.Now, Log: l.log,
	}
	if l.api != nil && *l.config.Kubernetes.Status {
		c.API, c.Refused = l.api, l.refusedTraceflows
	}
	return c
}

// refusedTraceflows are the Traceflows that are refused now, with the reasons.
func (l *live) refusedTraceflows() map[cluster.Key]string {
	all := map[cluster.Key]string{}
	for _, p := range l.problems() {
		if p.Key.Kind == cluster.KindTraceflow {
			all[p.Key] = p.EditText()
		}
	}
	return all
}
