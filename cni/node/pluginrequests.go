package node

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/antrail/antrail/cni"
	"github.com/containernetworking/cni/pkg/types"
)

// maxRequest bounds a request, in bytes: GC names all sandboxes of a Node.
const maxRequest = 4 << 20

// ServeHTTP answers POST /cni/{verb}.
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := &cni.Request{}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(req); err != nil {
		WriteError(w, cni.Errorf(types.ErrDecodingFailure, "the request cannot be read", err))
		return
	}
	reply, err := n.Do(r.Context(), cni.Verb(r.PathValue("verb")), req)
	if err != nil {
		WriteError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(reply)
}

// Do runs a request's verb. The error is a *types.Error.
func (n *Node) Do(ctx context.Context, v cni.Verb, r *cni.Request) (*cni.Reply, error) {
	n.calls.Add(1)
	defer n.calls.Done()
	reply := &cni.Reply{}
	var err error
	switch {
	case v == cni.Status:
		err = n.Status(ctx, r)
	case v == cni.GC:
		err = n.GC(ctx, r)
	case r.Container == "" || r.Interface == "":
		err = types.NewError(types.ErrInvalidEnvironmentVariables, "the request names no sandbox or no interface", "")
	case v == cni.Add:
		reply.Result, err = n.Add(ctx, r)
	case v == cni.Del:
		err = n.Del(ctx, r)
	case v == cni.Check:
		err = n.Check(ctx, r)
	default:
		err = types.NewError(types.ErrInvalidEnvironmentVariables, "unknown verb "+string(v), "")
	}
	if err != nil {
		return nil, asError(string(v), err)
	}
	return reply, nil
}

// WriteError answers a request with an error.
func WriteError(w http.ResponseWriter, err error) {
	var e *types.Error
	if !errors.As(err, &e) {
		e = cni.Errorf(types.ErrInternal, err.Error(), nil)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	json.NewEncoder(w).Encode(e)
}
