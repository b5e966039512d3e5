package kube

import (
	"context"
	"encoding/json"
	"time"

	"github.com/antrail/antrail/control/cluster"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// WriteTraceflow replaces the status of a Traceflow. If the object changed or is gone, it writes
// nothing: the watch reports the new state.
func (s *Source) WriteTraceflow(ctx context.Context, t *cluster.Traceflow, status *cluster.TraceflowStatus) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	body, err := json.Marshal(map[string]any{"metadata": traceflowState(t), "status": traceflowStatus(status)})
	if err != nil {
		return err
	}
	_, err = s.api.dynamic.Resource(s.traceflows()).Patch(ctx, t.Key.Name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// traceflowState is the metadata that restricts a write to one state of the object. It is empty for
// an object without a UID, which was refused.
func traceflowState(t *cluster.Traceflow) map[string]any {
	if t.UID == "" {
		return map[string]any{}
	}
	return map[string]any{"uid": t.UID, "resourceVersion": t.Version}
}

// traceflowStatus has null for unset fields, so that a merge patch removes them.
func traceflowStatus(s *cluster.TraceflowStatus) map[string]any {
	all := map[string]any{"phase": nil, "reason": nil, "startTime": nil, "dataplaneTag": nil, "results": nil}
	if s.Phase != "" {
		all["phase"] = s.Phase
	}
	if s.Reason != "" {
		all["reason"] = s.Reason
	}
	if s.StartTime != nil {
		all["startTime"] = s.StartTime.UTC().Format(time.RFC3339)
	}
	if s.Tag != 0 {
		all["dataplaneTag"] = s.Tag
	}
	if len(s.Results) > 0 {
		all["results"] = s.Results
	}
	return all
}

// traceflows is the resource in the watched version.
func (s *Source) traceflows() schema.GroupVersionResource {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		if w.kind == cluster.KindTraceflow {
			return w.gvr()
		}
	}
	return schema.GroupVersionResource{Group: antreaGroup, Version: "v1beta1", Resource: "traceflows"}
}
