// Package store keeps the objects that all sources say, and gives snapshots of them
// (package cluster). Sources are files (Manifests), the Kubernetes API (package kube) and
// the CNI plugin.
//
//	store.go                       changes come in; snapshots and what differs go out
//	store_derive.go                EndpointSlices from Services and Pods, where no source gives them
//	store_refuse.go                objects that only several together show to be wrong
//	podport.go                     the port that the CNI plugin made for a Pod
//	refusededits.go                objects that stay as they were before a refused edit
//	manifests.go, manifests_watch.go  files, and how they are watched
package store
