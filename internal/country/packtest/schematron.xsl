<?xml version="1.0" encoding="UTF-8"?>
<!-- Runs compiled Schematron rules over documents and writes what they found as text, a line each. -->
<xsl:stylesheet version="3.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
    xmlns:svrl="http://purl.oclc.org/dsdl/svrl" xmlns:err="http://www.w3.org/2005/xqt-errors">
  <xsl:output method="text"/>
  <xsl:template match="/jobs">
    <xsl:for-each select="rules">
      <xsl:variable name="rules" select="string(@href)"/>
      <xsl:for-each select="document">
        <xsl:try>
          <xsl:variable name="report" select="transform(map{'stylesheet-location': $rules, 'source-node': doc(@href)})?output"/>
          <xsl:value-of select="concat('document&#9;', @number, '&#9;', count($report//svrl:fired-rule), '&#10;')"/>
          <xsl:for-each select="$report//svrl:failed-assert | $report//svrl:successful-report">
            <xsl:variable name="flag" select="(@flag, @role, 'fatal')[1]"/>
            <xsl:value-of select="concat(if ($flag = ('fatal', 'error')) then 'error' else 'warning', '&#9;', @id, '&#9;', normalize-space(svrl:text), '&#10;')"/>
          </xsl:for-each>
          <xsl:catch>
            <xsl:value-of select="concat('document&#9;', @number, '&#9;0&#10;error&#9;', string($err:code), '&#9;', normalize-space($err:description), '&#10;')"/>
          </xsl:catch>
        </xsl:try>
      </xsl:for-each>
    </xsl:for-each>
  </xsl:template>
</xsl:stylesheet>
