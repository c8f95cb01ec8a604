package ro_test

import "tributary/internal/country/packtest"

func situations() []packtest.Situation { return nil }
