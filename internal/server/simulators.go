package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"tributary/internal/authority"
	"tributary/internal/authority/vies"
	"tributary/internal/country"
	"tributary/internal/country/world"
)

// simulators are the authorities and the VAT register of the demo on one listener.
type simulators struct {
	authorities *authority.Simulators
	mux         *http.ServeMux
	server      *http.Server
}

func openSimulators(dir string, packs []country.Pack) (*simulators, error) {
	authorities, err := country.NewSimulators(dir, packs...)
	if err != nil {
		return nil, err
	}
	s := &simulators{authorities: authorities, mux: http.NewServeMux()}
	register := vies.New(vies.Config{})
	s.mux.Handle(vies.Path+"/", register)
	s.mux.Handle("/_control/vies/", register)
	s.mux.Handle("/", authorities)
	return s, nil
}

func (s *simulators) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// serve answers on a listener until Close.
func (s *simulators) serve(l net.Listener) {
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: headerTimeout}
	go func() { _ = s.server.Serve(l) }() // ends with Close
}

// Close ends serving and the logs of what was registered.
func (s *simulators) Close() error {
	var err error
	if s.server != nil {
		err = s.server.Close()
	}
	return errors.Join(err, s.authorities.Close())
}

// Simulate serves the simulated authorities alone until ctx ends.
func Simulate(ctx context.Context, address, dir string, ready func(url string)) error {
	packs, err := world.Packs()
	if err != nil {
		return err
	}
	sims, err := openSimulators(dir, packs)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Join(fmt.Errorf("--simulators: %w", err), sims.Close())
	}
	srv := &http.Server{Handler: sims, ReadHeaderTimeout: headerTimeout}
	stopped := context.AfterFunc(ctx, func() { _ = srv.Close() }) // we are leaving
	defer stopped()
	ready("http://" + listener.Addr().String())
	if err = srv.Serve(listener); errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, sims.Close())
}
