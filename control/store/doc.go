// Package store holds the objects of all sources, and makes snapshots of them (package
// cluster). Sources are files (Manifests), the Kubernetes API (package kube) and the CNI
// plugin.
//
//	store.go                       takes changes, makes snapshots, and calls followers
//	store_derive.go                EndpointSlices from Services and Pods, if no source has them
//	store_refuse.go                objects that are wrong only together with others
//	podport.go                     the port that the CNI plugin made for a Pod
//	refusededits.go                objects whose new state is refused and whose old state stays
//	manifests.go, manifests_watch.go  reading and watching files
package store
